package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/gang/read"
	domain "berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/process"
)

func TestCauseOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		status *fwk.Status
		want   obstacle.NodeCause
	}{
		{"a node is short of resources", fwk.NewStatus(fwk.Unschedulable, "Insufficient cpu",
			"Too many pods").WithPlugin(names.NodeResourcesFit),
			obstacle.NodeCause{Short: "cpu"}},
		{"another plugin's word for it is its own", fwk.NewStatus(fwk.Unschedulable, "Insufficient luck").WithPlugin("Luck"),
			obstacle.OfNodes(obstacle.Text("Insufficient luck"))},
		{"a reason with amounts has a kind", process.Reject(fwk.Unschedulable, domain.Reason{Cause: domain.GPUsTaken, Need: 8,
			Have: 3}),
			obstacle.NodeCause{Message: "node(s) with too few free GPUs (need 8, have 3)",
				Kind: "node(s) with too few free GPUs"}},
		{"capacity is kept", process.Reject(fwk.Unschedulable, capacity.KeptFor{Namespace: "n", Name: "a"}),
			obstacle.NodeCause{Message: "node(s) whose free capacity is kept for gang n/a",
				Kind: "node(s) whose free capacity is kept for a gang"}},
		{"a node turned a member away", process.Reject(fwk.Unschedulable, plan.RefusedBefore("the ration is used up")),
			obstacle.NodeCause{Message: "node(s) that turned a member away: the ration is used up",
				Kind: "node(s) that turned a member away"}},
		{"a node turned a member away without a reason", process.Reject(fwk.Unschedulable, plan.RefusedBefore("")),
			obstacle.OfNodes(obstacle.Text("node(s) that turned a member away"))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, plan.CauseOf(tc.status)); diff != "" {
				t.Errorf("cause (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoKeepsItsNomination(t *testing.T) {
	t.Parallel()
	pod := func(nominated, gang string) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
			Status: v1.PodStatus{NominatedNodeName: nominated}}
		if gang != "" {
			read.Join(p, gang)
		}
		return p
	}
	for name, test := range map[string]struct {
		pod  *v1.Pod
		code fwk.Code
		want bool
	}{
		"an error":                    {pod: pod("n", ""), code: fwk.Error, want: true},
		"an error without nomination": {pod: pod("", ""), code: fwk.Error},
		"no node that fits":           {pod: pod("n", ""), code: fwk.Unschedulable},
		"an error of a member":        {pod: pod("n", "waits"), code: fwk.Error},
		"one of a gang that runs":     {pod: pod("n", "runs"), code: fwk.Error, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &coordinator{members: &members.Directory{}, ledger: gang.NewLedger(time.Minute, make(chan struct{}, 1))}
			runs := gang.ID{Namespace: "default", Name: "runs"}
			c.ledger.Define(runs, gang.Object, gang.Spec{Minimum: gang.Minimum{Total: 1}}, time.Now())
			c.ledger.Observe(runs, gang.Member{Ref: gang.Ref{UID: "first"}, State: gang.Bound, Node: "m"}, time.Now())
			if got := c.keepsNomination(test.pod, fwk.NewStatus(test.code)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
