package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/plan/sets"
	"berth.dev/berth/pkg/gang/tree"
)

// Two members of a group are to be on nodes 0 and 1 of rack 0, and one of another on node 2 of rack 1. All nodes take
// two by the account.
func TestWhatIsLearntOfPlansThatFail(t *testing.T) {
	t.Parallel()
	const nowhere = -1
	for _, tc := range []struct {
		name string
		// free and exact are the nodes of the three members by the two plans.
		free, exact [3]int
		// slots are what nodes take after that.
		slots   [4]int
		lowered bool
	}{
		{"all fit in their racks, and one not on its node", [3]int{0, 0, 2}, [3]int{0, nowhere, 2}, [4]int{2, 0, 2, 2}, true},
		{"a rack takes one of two", [3]int{0, nowhere, 2}, [3]int{nowhere, nowhere, 2}, [4]int{1, 0, 2, 2}, true},
		{"the node of the account is the one that takes one", [3]int{nowhere, nowhere, 2}, [3]int{0, nowhere, 2},
			[4]int{1, 0, 2, 2}, true},
		{"a rack takes none", [3]int{0, 1, nowhere}, [3]int{0, 1, nowhere}, [4]int{2, 2, 0, 0}, true},
		{"all fit", [3]int{0, 1, 2}, [3]int{0, 1, 2}, [4]int{2, 2, 2, 2}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := &sets.Problem{Problem: tree.Problem{Levels: [][]int{{0, 0, 1, 1}}}}
			var nodes []fwk.NodeInfo
			for i := range 4 {
				c.Nodes = append(c.Nodes, tree.Node{Slots: []int{2}})
				info := framework.NewNodeInfo()
				info.SetNode(st.MakeNode().Name(fmt.Sprint("n", i)).Obj())
				nodes = append(nodes, info)
			}
			var places []sets.Place
			for i := range 3 {
				places = append(places, sets.Place{Member: gang.Member{Ref: gang.Ref{UID: gang.UID(fmt.Sprint("m", i))}},
					Home: tree.Home{Level: 0, Domain: i / 2}, Node: i})
			}
			plan := func(at [3]int) *Plan {
				a := &Plan{Result: Result{}, Run: &Run{nodeCopies: nodeCopies{Part: Part{Nodes: nodes}}}}
				for i, n := range at {
					if n != nowhere {
						a.Assignments = append(a.Assignments, gang.Assignment{UID: places[i].UID, Node: fmt.Sprint("n", n)})
					}
				}
				return a
			}
			lowered := learn(c, places, plan(tc.free), plan(tc.exact))
			var slots [4]int
			for i := range slots {
				slots[i] = c.Nodes[i].Slots[0]
			}
			if diff := cmp.Diff(tc.slots, slots); diff != "" || lowered != tc.lowered {
				t.Errorf("lowered %t, want %t; slots (-want +got):\n%s", lowered, tc.lowered, diff)
			}
		})
	}
}
