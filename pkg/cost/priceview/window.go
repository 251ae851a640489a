package priceview

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/runview"
	"berth.dev/berth/pkg/wellknown"
)

// StartWindow is the window that a pod waits for by its own word.
type StartWindow struct {
	// Name of the window; empty without one.
	Name string
	// Deadline after which no window holds the pod back, zero without one: that which the pod names or, if it declares
	// how long it runs, by when it has to start to end by it.
	Deadline time.Time
	// Ends says that the pod is to end by what it names.
	Ends bool
}

// PodStartWindow reads the window that a pod names and its deadline. Whether the window exists is for the caller to
// say.
func PodStartWindow(pod *v1.Pod) (StartWindow, *wellknown.BadValue) {
	w := StartWindow{Name: pod.Annotations[wellknown.StartWindowKey]}
	deadline, bad := runview.PodDeadline(pod)
	if bad != nil {
		return w, bad
	}
	w.Deadline = deadline
	if due, ok := runview.DueOf(pod, nil); ok {
		w.Deadline, w.Ends = due.Start, true
	}
	return w, nil
}

// NamesWindow says whether the pod names a window, even an empty one.
func NamesWindow(pod *v1.Pod) bool {
	_, ok := pod.Annotations[wellknown.StartWindowKey]
	return ok
}
