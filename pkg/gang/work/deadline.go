package work

import (
	"time"

	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// PodDeadline reads the deadline of the pod, zero if it has none. By then the pod has to end if it declares a run time,
// else to start.
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

// Due is by when a pod has to end, and by when it has to start for that.
type Due struct {
	End, Start time.Time
	// Run is the declared run time.
	Run time.Duration
}

// DueOf reads by when the pod has to start, false if there is no deadline or no run time, of the pod or its PodGroup,
// which may be nil. Limits do not count: most pods end long before theirs.
func DueOf(pod *v1.Pod, group *schedulingv1alpha1.PodGroup) (Due, bool) {
	deadline, bad := PodDeadline(pod)
	if bad != nil || deadline.IsZero() {
		return Due{}, false
	}
	run := expected(pod, group)
	return Due{End: deadline, Start: deadline.Add(-run), Run: run}, run > 0
}

// DeadlineMissed is the condition that is true if a pod cannot end by its deadline anymore.
const DeadlineMissed v1.PodConditionType = "berth.dev/DeadlineMissed"

// Missed returns the message about the deadline that the pod misses, empty if it misses none.
func Missed(pod *v1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == DeadlineMissed && c.Status == v1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
