package runview

import (
	"time"

	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// PodDeadline reads the deadline of the pod, the zero time if it has none: by when it is to end if it declares a run
// time, and else by when it is to start.
func PodDeadline(pod *v1.Pod) (time.Time, *wellknown.BadValue) {
	value, ok := pod.Annotations[wellknown.DeadlineKey]
	if !ok {
		return time.Time{}, nil
	}
	deadline, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, podview.BadAnnotation(pod, wellknown.DeadlineKey,
			"a time as in RFC 3339, such as 2026-11-21T06:00:00+01:00")
	}
	return deadline, nil
}

// Due is by when a pod is to end, and by when it has to start for that.
type Due struct {
	End, Start time.Time
	// Run is how long it declares to run.
	Run time.Duration
}

// DueOf reads by when the pod has to start, false if it, or its PodGroup, which may be nil, does not say both its
// deadline and how long it runs. Limits do not count: most pods end long before theirs.
func DueOf(pod *v1.Pod, group *schedulingv1alpha1.PodGroup) (Due, bool) {
	deadline, bad := PodDeadline(pod)
	if bad != nil || deadline.IsZero() {
		return Due{}, false
	}
	run := expected(pod, group)
	return Due{End: deadline, Start: deadline.Add(-run), Run: run}, run > 0
}

// DeadlineMissed is the condition that is true if a pod cannot end by its deadline any more.
const DeadlineMissed v1.PodConditionType = "berth.dev/DeadlineMissed"

// Missed says which deadline the pod cannot keep any more, empty if it keeps it.
func Missed(pod *v1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == DeadlineMissed && c.Status == v1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
