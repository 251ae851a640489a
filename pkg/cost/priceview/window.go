package priceview

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/wellknown"
)

// StartWindow is the window that a pod names, with its deadline.
type StartWindow struct {
	// Name of the window; empty without one.
	Name string
	// Deadline is when the pod no longer waits, zero for never: the deadline that the pod names or, if it declares how
	// long it runs, the time at which it has to start to end by then.
	Deadline time.Time
	// Ends reports that the pod has to end, not to start, by the deadline that it names.
	Ends bool
}

// PodStartWindow reads the window that a pod names and its deadline. It does not check whether the window exists.
func PodStartWindow(pod *v1.Pod) (StartWindow, *wellknown.BadValue) {
	w := StartWindow{Name: pod.Annotations[wellknown.StartWindowKey]}
	deadline, bad := work.PodDeadline(pod)
	if bad != nil {
		return w, bad
	}
	w.Deadline = deadline
	if due, ok := work.DueOf(pod, nil); ok {
		w.Deadline, w.Ends = due.Start, true
	}
	return w, nil
}

// NamesWindow says whether the pod names a window, even an empty one.
func NamesWindow(pod *v1.Pod) bool {
	_, ok := pod.Annotations[wellknown.StartWindowKey]
	return ok
}
