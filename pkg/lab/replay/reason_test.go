package replay

import (
	"errors"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/process"
)

func TestMainReason(t *testing.T) {
	t.Parallel()
	const nodes = 10
	failed := func(absent *fwk.Status, statuses ...*fwk.Status) *fwk.Status {
		byNode := map[string]*fwk.Status{}
		for i, s := range statuses {
			byNode[string(rune('a'+i))] = s
		}
		return fwk.NewStatus(fwk.Unschedulable).WithError(&framework.FitError{NumAllNodes: nodes,
			Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewNodeToStatus(byNode, absent),
				PostFilterMsg: "preemption: no victims"}})
	}
	none := fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	stock := func(words ...string) *fwk.Status { return fwk.NewStatus(fwk.Unschedulable, words...) }
	taken := func(have int) *fwk.Status {
		return process.Reject(fwk.Unschedulable, gpu.Reason{Cause: gpu.GPUsTaken, Need: 8, Have: have})
	}
	by := func(plugin, words string) *fwk.Status { return stock(words).WithPlugin(plugin) }
	model := process.Reject(fwk.UnschedulableAndUnresolvable, gpu.Reason{Cause: gpu.WrongModel, Detail: "T4"})
	id := gang.ID{Namespace: "ns", Name: "g"}
	short := plan.NewShortfall(id, gang.Demand{Minimum: gang.Minimum{Total: 8}, Placed: 6}, plan.Result{}, nil, "",
		obstacle.Nodes{{Short: "nvidia.com/gpu", Nodes: 3}})
	few := obstacle.Obstacle{Cause: obstacle.TooFewMembers, Group: id, Have: 2, Need: 3}
	for _, tc := range []struct {
		name   string
		status *fwk.Status
		want   string
	}{
		{"the reason of the most nodes", failed(none, stock("tainted"), stock("Insufficient cpu"), stock("Insufficient cpu")),
			"Insufficient cpu"},
		{"a node counts for each of its reasons", failed(none, stock("a", "b"), stock("b")), "b"},
		{"of two that are as frequent the first by name", failed(none, stock("b"), stock("a")), "a"},
		{"amounts do not tell reasons apart", failed(none, taken(1), stock("cpu"), taken(2), stock("cpu"), taken(3)),
			"node(s) with too few free GPUs"},
		{"nodes that the pod itself does not want do not count beside others", failed(none,
			by(names.NodeAffinity, "selector"), by(names.TaintToleration, "tainted"), by(names.NodeAffinity, "selector"),
			taken(1)),
			"node(s) with too few free GPUs"},
		{"nor do those of models that it does not accept", failed(none, model, model, stock("Insufficient cpu")),
			"Insufficient cpu"},
		{"if the pod wants none of the nodes they count", failed(none, by(names.NodeAffinity, "selector"), model, model),
			"node(s) with another GPU model (T4)"},
		{"nodes that no filter saw count", failed(stock("not asked for"), stock("tainted"), stock("tainted")),
			"not asked for"},
		{"a gang that does not fit", failed(process.Reject(fwk.UnschedulableAndUnresolvable, short)),
			"gang does not fit: nodes with too little free nvidia.com/gpu"},
		{"a pod that is kept out of the queue", process.Reject(fwk.UnschedulableAndUnresolvable, few),
			"gang has fewer members than it needs"},
		{"the scheduler failed", fwk.AsStatus(errors.New("no connection")), "no connection"},
		{"nobody gives a reason", failed(none), "0/10 nodes are available: preemption: no victims"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, got := reasonsOf(tc.status); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
