package workview

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

const (
	// shortest is how often checkpoints are written at most, and longest the longest duration that is believed.
	shortest = 10 * time.Second
	longest  = 10 * 365 * 24 * time.Hour
)

// durations are the annotations that hold one.
var durations = []struct {
	key     string
	least   time.Duration
	allowed string
	of      func(*Work) *time.Duration
}{
	{wellknown.CheckpointEveryKey, shortest, "a duration of at least 10s and at most ten years, such as 30m or 1h",
		func(w *Work) *time.Duration { return &w.Every }},
	{wellknown.RestartCostKey, 1, "a duration above 0 and of at most ten years, such as 90s or 5m",
		func(w *Work) *time.Duration { return &w.Restart }},
	{wellknown.ProtectForKey, 1, "a duration above 0 and of at most ten years, such as 10m",
		func(w *Work) *time.Duration { return &w.Protected }},
}

// PodWork reads what the pod declares of its work. A wrong value says nothing.
func PodWork(pod *v1.Pod) (Work, *wellknown.BadValue) { return declared("pod", pod) }

// GroupWork reads what the PodGroup declares of the work of its pods. A wrong value says nothing.
func GroupWork(group metav1.Object) (Work, *wellknown.BadValue) {
	return declared("PodGroup "+group.GetName(), group)
}

func declared(object string, of metav1.Object) (Work, *wellknown.BadValue) {
	var (
		w     Work
		wrong *wellknown.BadValue
	)
	annotations := of.GetAnnotations()
	for _, d := range durations {
		value, ok := annotations[d.key]
		if !ok {
			continue
		}
		if n, err := time.ParseDuration(value); err == nil && n >= d.least && n <= longest {
			*d.of(&w) = n
		} else if wrong == nil {
			wrong = &wellknown.BadValue{Object: object, Kind: "annotation", Key: d.key, Value: value, Allowed: d.allowed}
		}
	}
	return w, wrong
}

// PodSaved reads when the pod says that it has last written a checkpoint, the zero time if it does not say.
func PodSaved(pod *v1.Pod) (time.Time, *wellknown.BadValue) { return saved("pod", pod) }

// GroupSaved reads when the PodGroup says that its pods have last written a checkpoint, the zero time if it does not
// say.
func GroupSaved(group metav1.Object) (time.Time, *wellknown.BadValue) {
	return saved("PodGroup "+group.GetName(), group)
}

// notSaved is what follows from a wrong checkpoint.
const notSaved = "the work counts as not saved"

func saved(object string, of metav1.Object) (time.Time, *wellknown.BadValue) {
	value, ok := of.GetAnnotations()[wellknown.LastCheckpointKey]
	if !ok {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, &wellknown.BadValue{Object: object, Kind: "annotation", Key: wellknown.LastCheckpointKey,
			Value: value, Allowed: "a time such as 2026-11-27T09:30:00Z", Effect: notSaved}
	}
	return t, nil
}

// Doubtful returns what is wrong with the last checkpoint of a pod that runs, nil if nothing is: it may be of the
// future, or of the time before the pod. Such a checkpoint does not count.
func Doubtful(pod *v1.Pod, now time.Time) *wellknown.BadValue {
	return doubtful("pod", pod, Started(pod), now)
}

// DoubtfulGroup does the same for a PodGroup, whose checkpoint may be older than its pods.
func DoubtfulGroup(group metav1.Object, now time.Time) *wellknown.BadValue {
	return doubtful("PodGroup "+group.GetName(), group, time.Time{}, now)
}

func doubtful(object string, of metav1.Object, started, now time.Time) *wellknown.BadValue {
	at, wrong := saved(object, of)
	if wrong != nil || at.IsZero() {
		return wrong
	}
	wrong = &wellknown.BadValue{Object: object, Kind: "annotation", Key: wellknown.LastCheckpointKey,
		Value: of.GetAnnotations()[wellknown.LastCheckpointKey], Effect: notSaved}
	switch {
	case !Credible(at, now):
		wrong.Allowed = "a time in the past"
	case at.Before(started.Truncate(time.Second)):
		wrong.Allowed = "after the start of the pod"
	default:
		return nil
	}
	return wrong
}
