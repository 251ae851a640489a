package overview

import (
	"testing"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
)

func TestTheQueueSaysWhyInBrief(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason, nominated, want string
	}{
		{"", "", "not tried yet"},
		{"gang default/g needs 3 nodes, fits 2", "", "gang default/g needs 3 nodes, fits 2"},
		{"0/40 nodes are available: 22 Insufficient cpu, 18 node(s) had untolerated taints. preemption: 0/40 nodes are " +
			"available: 40 Preemption is not helpful for scheduling.", "",
			"22 Insufficient cpu, 18 node(s) had untolerated taints"},
		{"0/2 nodes are available: 2 Insufficient cpu.", "n1", "pods are being evicted from n1; 2 Insufficient cpu"},
		{"0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.", "",
			"2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never"},
	} {
		assert.Equal(t, tt.reason, tt.want, (&Waiting{Reason: tt.reason, Nominated: tt.nominated}).Why())
	}
}

func TestAGangIsNotNamedTwice(t *testing.T) {
	t.Parallel()
	const reason = "gang team/train needs 3 nodes, fits 2"
	if got := (&Waiting{Namespace: "team", Name: "train", Gang: true,
		Reason: reason}).Why(); got != "needs 3 nodes, fits 2" {
		t.Errorf("in the queue: got %q", got)
	}
	if got := (&Gang{Late: "the gang cannot end in time"}).Lacks(); got != "the gang cannot end in time" {
		t.Errorf("a gang that is late lacks %q", got)
	}
	if got := (&Gang{Namespace: "team", Name: "train", Reason: reason,
		Reserved: "2 nodes reserved"}).Lacks(); got != "needs 3 nodes, fits 2; 2 nodes reserved" {
		t.Errorf("among gangs: got %q", got)
	}
	if got := (&Waiting{Namespace: "team", Name: "other", Reason: reason}).Why(); got != reason {
		t.Errorf("of a pod of another name: got %q", got)
	}
}

func TestAGangShowsItsGroups(t *testing.T) {
	t.Parallel()
	pg := &schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1}}
	for text, want := range map[string]string{"": "",
		"[{name: replica, copies: 4, minCopies: 2, roles: {worker: 4}}]": "2 of 4 replica (worker=4)"} {
		pg.Annotations = map[string]string{}
		if text != "" {
			pg.Annotations[wellknown.GroupsKey] = text
		}
		var shown Gang
		shown.describe(&gangEntry{group: pg})
		if shown.Groups != want {
			t.Errorf("annotation %q shows %q, want %q", text, shown.Groups, want)
		}
	}
}
