package priceview

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
)

// StartWindow is the window that a pod waits for by its own word.
type StartWindow struct {
	// Name of the window; empty without one.
	Name string
	// Deadline after which no window holds the pod back; zero without one.
	Deadline time.Time
}

// PodStartWindow reads the window that a pod names and its deadline. Whether the window exists is for the caller to
// say.
func PodStartWindow(pod *v1.Pod) (StartWindow, *wellknown.BadValue) {
	w := StartWindow{Name: pod.Annotations[wellknown.StartWindowKey]}
	value, ok := pod.Annotations[wellknown.DeadlineKey]
	if !ok {
		return w, nil
	}
	deadline, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return w, &wellknown.BadValue{
			Object: "pod", Kind: "annotation", Key: wellknown.DeadlineKey, Value: value,
			Allowed: "a time as in RFC 3339, such as 2026-11-21T06:00:00+01:00",
		}
	}
	w.Deadline = deadline
	return w, nil
}

// NamesWindow says whether the pod names a window, even an empty one.
func NamesWindow(pod *v1.Pod) bool {
	_, ok := pod.Annotations[wellknown.StartWindowKey]
	return ok
}
