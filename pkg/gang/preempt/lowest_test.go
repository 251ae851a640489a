package preempt

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestLowestPrioritiesFollowTheNodes(t *testing.T) {
	t.Parallel()
	var l lowestPriorities
	pod := func(priority int32) *v1.Pod { return st.MakePod().Name("p").Priority(priority).Obj() }
	grouped := pod(100)
	grouped.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new("g")}
	a, b := framework.NewNodeInfo(), framework.NewNodeInfo(pod(10))
	nodes := []fwk.NodeInfo{a, b}
	for _, step := range []struct {
		name   string
		change func()
		below  int32
		want   bool
	}{
		{name: "the lowest is as important", below: 10},
		{name: "the lowest is less important", below: 11, want: true},
		{name: "a less important one has come", change: func() { a.AddPod(pod(5)) }, below: 6, want: true},
		{name: "and none below that", below: 5},
		{name: "they are listed in another order", change: func() { nodes = []fwk.NodeInfo{b, a} }, below: 6, want: true},
		{name: "its node has gone", change: func() { nodes = nodes[:1] }, below: 6},
		{name: "a pod of a native group may be of any", change: func() { b.AddPod(grouped) }, below: 6, want: true},
	} {
		if step.change != nil {
			step.change()
		}
		if got := l.below(nodes, step.below); got != step.want {
			t.Errorf("%s: below %d is %t, want %t", step.name, step.below, got, step.want)
		}
	}
}
