package status

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/wellknown"
)

// deadlineMissed is the condition of PodGroups that cannot end by their deadline anymore, and the reason of events
// about them and about such pods.
const deadlineMissed = schedulingv1alpha1.PodGroupDeadlineMissed

// The reasons of the condition.
const (
	cannotEndInTime = "CannotEndInTime"
	expectedTooLate = "ExpectedTooLate"
	canEndInTime    = "CanEndInTime"
)

// lateMessage is the message about a missed deadline. It does not change with time.
func lateMessage(who string, due *work.Due) string {
	return fmt.Sprintf("%s cannot end by %s (%s): with a run time of %s, it had to start by %s", who,
		due.End.Format(time.RFC3339), wellknown.DeadlineKey, due.Run, due.Start.Format(time.RFC3339))
}

// dueOf returns the earliest time by which a pending member has to start, false if none has a deadline.
func (s *State) dueOf(pg *schedulingv1alpha1.PodGroup) (first work.Due, stated bool) {
	for _, pod := range s.Members {
		if _, has := pod.Annotations[wellknown.DeadlineKey]; !has || !waits(pod) {
			continue
		}
		if due, ok := work.DueOf(pod, pg); ok && (!stated || due.Start.Before(first.Start)) {
			first, stated = due, true
		}
	}
	return first, stated
}

// judgeDeadline returns whether a gang that waits misses its deadline, with the reason and message of the condition. An
// empty reason leaves the condition as it is, such as for a gang that has started.
func (s *State) judgeDeadline(pg *schedulingv1alpha1.PodGroup, now time.Time) (late bool, reason, message string) {
	due, stated := s.dueOf(pg)
	switch {
	case s.Met() || s.Started || !s.Known:
		return false, "", ""
	case !stated:
		return false, canEndInTime, ""
	case now.After(due.Start):
		return true, cannotEndInTime, lateMessage("the gang", &due)
	case s.Reserved.Start != nil && s.Reserved.Start.Time.After(due.Start):
		return true, expectedTooLate, lateMessage("the gang", &due) + ", and is expected to start later"
	}
	return false, canEndInTime, ""
}

// lookAtDeadline returns after what time to check the deadline again, 0 for never.
func (s *State) lookAtDeadline(pg *schedulingv1alpha1.PodGroup, now time.Time) time.Duration {
	due, stated := s.dueOf(pg)
	if !stated || s.Met() {
		return 0
	}
	return untilLate(&due, now)
}

// untilLate returns after what time to check again whether it is too late to start, 0 if it is.
func untilLate(due *work.Due, now time.Time) time.Duration {
	if now.After(due.Start) {
		return 0
	}
	return min(due.Start.Sub(now)+time.Second, longestWait)
}

// reportDeadline records an event on the PodGroup if the gang cannot end in time, once for each message, and none if
// the condition is true already.
func (c *Controller) reportDeadline(ctx context.Context, s *State, pg *schedulingv1alpha1.PodGroup, r *record,
	now time.Time) {
	late, _, message := s.judgeDeadline(pg, now)
	if !late || r.late == message {
		return
	}
	if !meta.IsStatusConditionTrue(pg.Status.Conditions, deadlineMissed) {
		c.recorder.warn(ctx, ReferenceTo(pg), deadlineMissed, message)
		missedDeadlines.WithLabelValues(ofGang).Inc()
	}
	r.late = message
}

// hasDeadline reports whether a single pod of this scheduler is pending and has a deadline or the condition.
func (p *PodEvents) hasDeadline(pod *v1.Pod) bool {
	_, has := pod.Annotations[wellknown.DeadlineKey]
	return (has || podIsLate(pod) != nil) && waits(pod) && pod.DeletionTimestamp == nil &&
		p.c.source.Profiles.Of(pod) != nil && p.c.source.Members.ID(pod) == (gang.ID{})
}

func podIsLate(pod *v1.Pod) *v1.PodCondition {
	_, c := podutil.GetPodCondition(&pod.Status, work.DeadlineMissed)
	return c
}

// syncDeadline sets the condition of the pod to whether it cannot end by its deadline. It returns after what time to
// check again, 0 for never.
func (p *PodEvents) syncDeadline(ctx context.Context, pod *v1.Pod) time.Duration {
	now := time.Now()
	due, stated := work.DueOf(pod, nil)
	want := v1.PodCondition{Type: work.DeadlineMissed, Status: v1.ConditionFalse, Reason: canEndInTime,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	again := time.Duration(0)
	if stated {
		if again = untilLate(&due, now); again == 0 {
			want.Status, want.Reason, want.Message = v1.ConditionTrue, cannotEndInTime, lateMessage("the pod", &due)
		}
	}
	have := podIsLate(pod)
	switch {
	case have == nil && want.Status == v1.ConditionFalse:
		return again
	case have != nil && have.Status == want.Status && have.Message == want.Message:
		return again
	}
	err := p.c.api.patchPodStatus(ctx, pod, map[string]any{"conditions": []v1.PodCondition{want}})
	if err != nil && !apierrors.IsForbidden(err) { // an older admission policy does not know the condition
		klog.FromContext(ctx).Error(err, "Writing that a pod misses its deadline failed, trying again", "pod", klog.KObj(pod))
		return retryLast
	}
	if want.Status == v1.ConditionTrue && p.warnOnce(ctx, pod, deadlineMissed, want.Message) {
		missedDeadlines.WithLabelValues(ofPod).Inc()
	}
	return again
}
