package kubeview

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

// PodGroupStatus returns the status of pg for what is known of its gang. What does not change keeps its times.
func PodGroupStatus(pg *schedulingv1alpha1.PodGroup, v gang.View, now time.Time) schedulingv1alpha1.PodGroupStatus {
	s := *pg.Status.DeepCopy()
	minMember := max(int(pg.Spec.MinMember), 1)
	s.Scheduled = int32(v.Count[gang.Bound])
	s.Running = int32(v.Running)
	s.Succeeded = int32(v.Count[gang.Succeeded])
	s.Failed = int32(v.Count[gang.Failed])
	s.Phase = podGroupPhase(minMember, v)
	quorum := v.Existing() >= minMember
	if quorum && s.ScheduleStartTime.IsZero() {
		s.ScheduleStartTime = metav1.NewTime(now.Truncate(time.Second))
	}
	set := func(kind string, holds bool, yes, no, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: no, Message: message,
			ObservedGeneration: pg.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
		if holds {
			c.Status, c.Reason = metav1.ConditionTrue, yes
		}
		meta.SetStatusCondition(&s.Conditions, c)
	}
	set(schedulingv1alpha1.PodGroupQuorum, quorum, "EnoughMembers", "TooFewMembers",
		fmt.Sprintf("%d of %d members exist", v.Existing(), minMember))
	scheduled := v.Settled() >= minMember
	message, reason := fmt.Sprintf("%d of %d members are bound or have succeeded", v.Settled(), minMember), "InProgress"
	switch {
	case scheduled:
	case v.Reason != "":
		message, reason = v.Reason, "Unschedulable"
	case !quorum:
		reason = "TooFewMembers"
	}
	set(schedulingv1alpha1.PodGroupScheduledCondition, scheduled, "MinimumBound", reason, message)
	message = ""
	if v.Degraded {
		message = fmt.Sprintf("%d of the %d members that started are left", v.Settled(), minMember)
	}
	set(schedulingv1alpha1.PodGroupDegraded, v.Degraded, "MembersLost", "NoMembersLost", message)
	return s
}

func podGroupPhase(minMember int, v gang.View) schedulingv1alpha1.PodGroupPhase {
	switch {
	case v.Count[gang.Succeeded] >= minMember:
		return schedulingv1alpha1.PodGroupFinished
	case v.Count[gang.Failed] > 0 && v.Existing() < minMember:
		return schedulingv1alpha1.PodGroupFailed
	case v.Running+v.Count[gang.Succeeded] >= minMember:
		return schedulingv1alpha1.PodGroupRunning
	case v.Settled() >= minMember:
		return schedulingv1alpha1.PodGroupScheduled
	case v.Count[gang.Bound]+v.Seated > 0:
		return schedulingv1alpha1.PodGroupScheduling
	case v.Existing() >= minMember:
		return schedulingv1alpha1.PodGroupPreScheduling
	default:
		return schedulingv1alpha1.PodGroupPending
	}
}
