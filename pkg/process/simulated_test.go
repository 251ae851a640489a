package process

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/assert"
)

func grouped(namespace, name string) *v1.Pod {
	pod := st.MakePod().Namespace(namespace).Name(name).UID(namespace + name).Obj()
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("g")}
	return pod
}

func TestSimulatedAreTheOtherMembersOnTheNodes(t *testing.T) {
	t.Parallel()
	pod, single := grouped("n", "own"), st.MakePod().Namespace("n").Name("single").UID("single").Obj()
	node := framework.NewNodeInfo(pod, grouped("n", "other"), grouped("m", "elsewhere"), single)
	node.SetNode(st.MakeNode().Name("a").Obj())
	simulation := framework.NewCycleState()
	simulation.SetPodGroupSchedulingCycle(framework.NewCycleState())
	for name, tc := range map[string]struct {
		pod   *v1.Pod
		state fwk.CycleState
		want  []string
	}{
		"in a simulation of its group":       {pod, simulation, []string{"other on a"}},
		"in a cycle of its own":              {pod, framework.NewCycleState(), nil},
		"a pod of no group has no others":    {single, simulation, nil},
		"the other sees the first, likewise": {grouped("n", "other"), simulation, []string{"own on a"}},
	} {
		var got []string
		for other, on := range Simulated(tc.pod, tc.state, []fwk.NodeInfo{node}) {
			got = append(got, other.Name+" on "+on.Node().Name)
		}
		assert.Equal(t, name, tc.want, got)
	}
}
