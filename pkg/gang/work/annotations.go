package work

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

const (
	// shortest is the least time between two checkpoints, and longest the longest duration.
	shortest = 10 * time.Second
	longest  = 10 * 365 * 24 * time.Hour
)

// durations are the annotations that hold one, in the order of Work.durations.
var durations = []struct {
	key     string
	least   time.Duration
	allowed string
}{
	{wellknown.CheckpointEveryKey, shortest, "a duration of at least 10s and at most ten years, such as 30m or 1h"},
	{wellknown.RestartCostKey, 1, "a duration above 0 and of at most ten years, such as 90s or 5m"},
	{wellknown.ProtectForKey, 1, "a duration above 0 and of at most ten years, such as 10m"},
}

// Declared reads what a pod, or a PodGroup for its pods, declares of their work. It ignores a bad value, and returns
// the first.
func Declared(of metav1.Object) (Work, *wellknown.BadValue) {
	var (
		w     Work
		wrong *wellknown.BadValue
	)
	annotations := of.GetAnnotations()
	for i, d := range durations {
		value, ok := annotations[d.key]
		if !ok {
			continue
		}
		if n, err := time.ParseDuration(value); err == nil && n >= d.least && n <= longest {
			*w.durations()[i] = n
		} else if wrong == nil {
			wrong = podview.BadAnnotation(of, d.key, d.allowed)
		}
	}
	return w, wrong
}

// Saved reads the time of the last checkpoint of the pod, or of the PodGroup, zero without the annotation.
func Saved(of metav1.Object) (time.Time, *wellknown.BadValue) {
	value, ok := of.GetAnnotations()[wellknown.LastCheckpointKey]
	if !ok {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, badCheckpoint(of, "a time such as 2026-11-27T09:30:00Z")
	}
	return t, nil
}

func badCheckpoint(of metav1.Object, allowed string) *wellknown.BadValue {
	bad := podview.BadAnnotation(of, wellknown.LastCheckpointKey, allowed)
	bad.Effect = "the work counts as not saved"
	return bad
}

// Doubtful returns what is wrong with the last checkpoint of a running pod, or of a PodGroup, nil if nothing is. A
// checkpoint in the future, or from before the start of the pod, does not count.
func Doubtful(of metav1.Object, now time.Time) *wellknown.BadValue {
	at, wrong := Saved(of)
	if wrong != nil || at.IsZero() {
		return wrong
	}
	if !Credible(at, now) {
		return badCheckpoint(of, "a time in the past")
	}
	// The checkpoint of a PodGroup may be older than its pods.
	if pod, ok := of.(*v1.Pod); ok && at.Before(Started(pod).Truncate(time.Second)) {
		return badCheckpoint(of, "after the start of the pod")
	}
	return nil
}

// Started returns when a pod with a node was started or, if its status does not have that, when it was created.
func Started(pod *v1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}
