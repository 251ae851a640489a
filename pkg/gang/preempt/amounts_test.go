package preempt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/podview"
)

func TestFreeOn(t *testing.T) {
	t.Parallel()
	node := func(name string, pods ...*v1.Pod) fwk.NodeInfo {
		n := framework.NewNodeInfo(pods...)
		n.SetNode(st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{"cpu": "8", "memory": "16Gi", "pods": "3",
			"nvidia.com/gpu": "4"}).Obj())
		return n
	}
	pod := st.MakePod().Name("p").UID("p").Req(map[v1.ResourceName]string{"cpu": "3", "memory": "1Gi",
		"nvidia.com/gpu": "1"}).Obj()
	// More than the node has: what is missing there is not taken from other nodes.
	large := st.MakePod().Name("q").UID("q").Req(map[v1.ResourceName]string{"cpu": "9"}).Obj()
	nodes := []fwk.NodeInfo{node("a", pod), node("b", large), node("c")}
	want := map[v1.ResourceName]int64{"cpu": 13000, "memory": 47 << 30, "pods": 7, "nvidia.com/gpu": 11,
		"example.com/unheard-of": 0}
	got := map[v1.ResourceName]int64{}
	for name := range want {
		got[name] = freeOn(nodes, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("free (-want +got):\n%s", diff)
	}
	want = map[v1.ResourceName]int64{"cpu": 3000, "memory": 1 << 30, "pods": 1, "nvidia.com/gpu": 1}
	got = map[v1.ResourceName]int64{}
	for name := range want {
		got[name] = podview.UsedBy(nodes[0].GetPods()[0], name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
}
