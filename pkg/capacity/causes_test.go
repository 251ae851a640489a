package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang/obstacle"
)

func TestIndexCauses(t *testing.T) {
	t.Parallel()
	four := gpuPod("new", "", "4")
	four.Spec.NodeSelector = map[string]string{"kind": "a"}
	of := func(name, gpus string) *st.NodeWrapper { return gpuNode(name, gpus).Label("kind", "a") }
	taint := []v1.Taint{{Key: "x", Effect: v1.TaintEffectNoSchedule}}
	full := st.MakeNode().Name("full").Label("kind", "a").Capacity(map[v1.ResourceName]string{gpu: "2",
		v1.ResourcePods: "0"}).Obj()
	says := func(words string, nodes int) obstacle.NodeCause {
		return obstacle.NodeCause{Says: words, Kind: words, Nodes: nodes, Own: words != "node(s) were unschedulable"}
	}
	missing := func(says string) obstacle.NodeCause {
		return obstacle.NodeCause{Says: says, Kind: "no node has the label of a level"}
	}
	for _, tc := range []struct {
		name   string
		within []string
		nodes  []*v1.Node
		want   obstacle.Nodes
	}{
		{"a cluster without nodes says so", nil, nil, obstacle.Nodes{told("the cluster has no nodes")}},
		{"one node of each kind", nil, []*v1.Node{of("a", "2").Obj(), of("b", "8").Unschedulable(true).Obj(),
			of("c", "8").Taints(taint).Obj(), gpuNode("d", "8").Obj()},
			obstacle.Nodes{
				says("node(s) didn't match Pod's node affinity/selector", 1),
				says("node(s) had untolerated taint(s)", 1),
				says("node(s) were unschedulable", 1),
				{Short: "nvidia.com/gpu", Most: "2", Nodes: 1},
			}},
		{"the cause of most nodes comes first", nil, []*v1.Node{of("a", "2").Obj(), of("b", "8").Unschedulable(true).Obj(),
			of("c", "8").Unschedulable(true).Obj()},
			obstacle.Nodes{says("node(s) were unschedulable", 2), {Short: "nvidia.com/gpu", Most: "2", Nodes: 1}}},
		{"nodes too small have at most what the largest has", nil,
			[]*v1.Node{of("a", "4").Obj(), of("b", "2").Obj(), of("c", "3").Obj()},
			obstacle.Nodes{{Short: "nvidia.com/gpu", Most: "3", Nodes: 2}, {Fits: true, Nodes: 1}}},
		{"a node without any has none", nil, []*v1.Node{of("a", "4").Obj(), of("b", "0").Obj(), of("c", "0").Obj()},
			obstacle.Nodes{{Short: "nvidia.com/gpu", Most: "0", Nodes: 2}, {Fits: true, Nodes: 1}}},
		{"a node counts once, for what it lacks when it is empty first", nil, []*v1.Node{of("a", "4").Obj(), full},
			obstacle.Nodes{{Short: "nvidia.com/gpu", Most: "2", Nodes: 1}, {Fits: true, Nodes: 1}}},
		{"all nodes fit, but not in one domain", []string{"rack"}, []*v1.Node{of("a", "4").Label("rack", "1").Obj(),
			of("b", "4").Label("rack", "1").Obj(), of("c", "4").Label("rack", "2").Obj()},
			obstacle.Nodes{{Fits: true, Nodes: 3, Says: ", at most 2 in one rack"}}},
		{"nodes without the label of a level are in no domain", []string{"rack"},
			[]*v1.Node{of("a", "4").Label("rack", "1").Obj(), of("b", "4").Obj(), of("c", "4").Obj()},
			obstacle.Nodes{{Says: "node(s) without the label rack", Kind: "node(s) without the label of a level", Nodes: 2},
				{Fits: true, Nodes: 1, Says: ", at most 1 in one rack"}}},
		{"no node has the label of a level", []string{"kind", "rak"}, []*v1.Node{of("a", "4").Label("rack", "1").Obj()},
			obstacle.Nodes{missing("no node has the label rak; did you mean rack?")}},
		{"nothing is like the label that no node has", []string{"zone"}, []*v1.Node{of("a", "4").Obj()},
			obstacle.Nodes{missing("no node has the label zone")}},
		{"the name after the prefix is enough", []string{"rack"},
			[]*v1.Node{of("a", "4").Label("topology.kubernetes.io/rack", "1").Obj()},
			obstacle.Nodes{missing("no node has the label rack; did you mean topology.kubernetes.io/rack?")}},
		{"no node has the labels of all levels", []string{"block", "rack"},
			[]*v1.Node{of("a", "4").Label("block", "1").Obj(), of("b", "4").Label("rack", "1").Obj()},
			obstacle.Nodes{missing("no node has all labels of block, rack")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			x := New(unclaimed, allFilters)
			for _, node := range tc.nodes {
				x.Feed.SetNode(node)
			}
			if diff := cmp.Diff(tc.want, x.Causes(x.Acquire(four), tc.within, nil, nil)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}
