package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/plan/sets"
	"berth.dev/berth/pkg/gang/read"
)

func TestPathsFollowTheNodes(t *testing.T) {
	t.Parallel()
	none := corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil))
	p := &Planner{Sources: Sources{Divider: &sets.Divider{Members: &members.Directory{Lister: none}}}}
	demand := gang.Demand{Members: make([]gang.Member, 2)}
	node := func(name, rack string) fwk.NodeInfo {
		info := framework.NewNodeInfo()
		info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"rack": rack, "zone": "z"}}})
		return info
	}
	a, b, moved := node("a", "r1"), node("b", "r2"), node("b", "r1")
	for _, step := range []struct {
		name   string
		levels []string
		nodes  []fwk.NodeInfo
		want   [][]string
	}{
		{"two racks", []string{"rack"}, []fwk.NodeInfo{a, b}, [][]string{{"r1"}, {"r2"}}},
		{"the same again", []string{"rack"}, []fwk.NodeInfo{a, b}, [][]string{{"r1"}, {"r2"}}},
		{"in another order", []string{"rack"}, []fwk.NodeInfo{b, a}, [][]string{{"r2"}, {"r1"}}},
		{"other levels", []string{"zone", "rack"}, []fwk.NodeInfo{b, a}, [][]string{{"z", "r2"}, {"z", "r1"}}},
		{"a node has another label", []string{"rack"}, []fwk.NodeInfo{moved, a}, [][]string{{"r1"}, {"r1"}}},
		{"a node is gone", []string{"rack"}, []fwk.NodeInfo{a}, [][]string{{"r1"}}},
		{"no levels", nil, []fwk.NodeInfo{a}, nil},
	} {
		if diff := cmp.Diff(step.want, p.paths(read.Topology{Required: step.levels}, demand, step.nodes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	for i := range 3 * maxPathTables {
		levels := slices.Repeat([]string{"rack"}, i+1)
		if got := p.paths(read.Topology{Required: levels}, demand, []fwk.NodeInfo{b}); len(got[0]) != i+1 {
			t.Errorf("with %d levels a path has %d", i+1, len(got[0]))
		}
		if len(p.tables) > maxPathTables {
			t.Fatalf("%d tables are kept, %d are allowed", len(p.tables), maxPathTables)
		}
	}
}

func TestLevelsThatDivideNoNodesAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		all  [][]string
		want []int
	}{
		{"no nodes", nil, nil},
		{"nodes without labels", [][]string{{"", ""}, {"", ""}}, nil},
		{"one rack of one zone", [][]string{{"z", "r"}, {"z", "r"}}, nil},
		{"two racks of one zone", [][]string{{"z", "r1"}, {"z", "r2"}}, []int{1}},
		{"racks that not all nodes tell", [][]string{{"z", ""}, {"z", "r2"}}, []int{1}},
		{"racks of the same name in two zones", [][]string{{"z1", "r"}, {"z2", "r"}}, []int{0}},
		{"all levels", [][]string{{"z1", "r1"}, {"z2", "r2"}}, []int{0, 1}},
		{"no levels", [][]string{{}, {}}, nil},
	} {
		if diff := cmp.Diff(test.want, dividing(test.all, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if kept := dividing([][]string{{"z", "r"}, {"z", "r"}}, 1); !slices.Equal(kept, []int{0}) {
		t.Errorf("levels %v are kept, want the one that the gang names", kept)
	}
}
