package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/process"
)

// What nodes lack otherwise is compared in TestIndexAgainstModel.
func TestLabelsOfLevelsThatNoNodeHas(t *testing.T) {
	t.Parallel()
	four := gpuPod("new", "", "4")
	four.Spec.NodeSelector = map[string]string{"kind": "a"}
	of := func(name, gpus string) *st.NodeWrapper { return gpuNode(name, gpus).Label("kind", "a") }
	missing := func(says string) obstacle.NodeCause {
		return obstacle.NodeCause{Message: says, Kind: "no node has the label of a level"}
	}
	for _, tc := range []struct {
		name   string
		within []string
		nodes  []*v1.Node
		want   obstacle.Nodes
	}{
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
			x := New(&process.Profiles{})
			for _, node := range tc.nodes {
				x.Feed.SetNode(node)
			}
			if diff := cmp.Diff(tc.want, x.Causes(x.Acquire(four), tc.within, nil, nil)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}
