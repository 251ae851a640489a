package overview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

func TestTheHistoryOfAGang(t *testing.T) {
	t.Parallel()
	after := func(seconds int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(seconds) * time.Second)) }
	member := func(name, rank, node string, created int, phase v1.PodPhase, conditions ...v1.PodCondition) *v1.Pod {
		return pod(name, node, "nvidia.com/gpu=4", func(p *v1.Pod) {
			p.Labels["scheduling.x-k8s.io/pod-group"], p.Labels["batch.kubernetes.io/job-completion-index"] = "g", rank
			p.CreationTimestamp, p.Status.Phase, p.Status.Conditions = after(created), phase, conditions
		})
	}
	is := func(kind v1.PodConditionType, status v1.ConditionStatus, at int, message string) v1.PodCondition {
		return v1.PodCondition{Type: kind, Status: status, LastTransitionTime: after(at), Message: message}
	}
	group := func(reserved metav1.ConditionStatus) *schedulingv1alpha1.PodGroup {
		g := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "g",
			CreationTimestamp: after(0)}}
		g.Spec.MinMember = 2
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1alpha1.PodGroupReserved, Status: reserved,
			LastTransitionTime: after(9), Message: "2 nodes reserved"}}
		return g
	}
	for _, tc := range []struct {
		name    string
		objects []any
		members []Member
		moments []Moment
	}{
		{"a gang that waits was created, planned, and has nodes reserved",
			[]any{group(metav1.ConditionTrue), member("b", "1", "", 2, v1.PodPending, is(v1.PodScheduled, v1.ConditionFalse, 3,
				"needs 2, fits 1")),
				member("a", "0", "", 1, v1.PodPending)},
			[]Member{{Name: "a", Rank: "0", Phase: "Pending", Created: after(1).Time, MilliGPU: 4000},
				{Name: "b", Rank: "1", Phase: "Pending", Created: after(2).Time, MilliGPU: 4000, Reason: "needs 2, fits 1",
					Tried: after(3).Time}},
			[]Moment{{after(0).Time, "created", "the PodGroup is created"},
				{after(1).Time, "first pod", "the first pod is created"},
				{after(2).Time, "complete", "2 members exist"}, {after(3).Time, "plan", "needs 2, fits 1"},
				{after(9).Time, "reserve", "2 nodes reserved"}}},
		{"one that has started was bound and runs, and what ended is said",
			[]any{group(metav1.ConditionFalse),
				member("a", "0", "n", 1, v1.PodRunning, is(v1.PodScheduled, v1.ConditionTrue, 10, ""),
					is(v1.PodReady, v1.ConditionTrue, 12, "")),
				member("b", "1", "n", 1, v1.PodSucceeded, is(v1.PodScheduled, v1.ConditionTrue, 11, ""),
					is(v1.PodReady, v1.ConditionFalse, 20, ""))},
			[]Member{{Name: "a", Rank: "0", Node: "n", Phase: "Running", Created: after(1).Time, Bound: after(10).Time,
				Ready: after(12).Time, MilliGPU: 4000},
				{Name: "b", Rank: "1", Node: "n", Phase: "Succeeded", Created: after(1).Time, Bound: after(11).Time,
					Ended: after(20).Time}},
			[]Moment{{after(0).Time, "created", "the PodGroup is created"},
				{after(1).Time, "first pod", "the first pod is created"},
				{after(1).Time, "complete", "2 members exist"},
				{after(9).Time, "reservation ends", "no nodes are reserved any more"},
				{after(10).Time, "bind", "2 members within 1s"}}},
		{"a gang without a PodGroup is told by its pods",
			[]any{member("a", "0", "n", 1, v1.PodRunning, is(v1.PodScheduled, v1.ConditionTrue, 5, ""),
				is(v1.PodReady, v1.ConditionTrue, 6, ""))},
			[]Member{{Name: "a", Rank: "0", Node: "n", Phase: "Running", Created: after(1).Time, Bound: after(5).Time,
				Ready: after(6).Time, MilliGPU: 4000}},
			[]Moment{{after(1).Time, "first pod", "the first pod is created"}, {after(1).Time, "complete", "1 member exists"},
				{after(5).Time, "bind", "1 member within 0s"}, {after(6).Time, "running", "1 member ready"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBook(tc.objects...)
			if diff := cmp.Diff(&History{Members: tc.members, Moments: tc.moments}, b.History("team", "g")); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			if h := b.History("team", "other"); h != nil {
				t.Errorf("a gang that there is not has the history %+v", h)
			}
		})
	}
}
