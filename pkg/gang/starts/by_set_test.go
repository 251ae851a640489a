package starts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang/tree"
)

// segmentsIn are sets that each need a number of members of the first shape in one of the racks.
func segmentsIn(racks []int, needs ...int) *tree.Problem {
	p := &tree.Problem{Levels: [][]int{racks}, Asks: [][]int64{{}}, Sets: []tree.Set{{Level: tree.None, Held: tree.None,
		Need: []int{0}, Least: len(needs), Enough: tree.None}}}
	for i, need := range needs {
		p.Sets = append(p.Sets, tree.Set{Level: 0, Held: tree.None, Need: []int{need}, Enough: tree.None})
		p.Sets[0].Sets = append(p.Sets[0].Sets, i+1)
	}
	return p
}

func TestChooseBySet(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// pods are how many pods have to end on each node until one member fits, in racks of three nodes.
		pods  []int
		kept  []int
		needs []int
		most  int
		want  []string
		ends  int
	}{
		{name: "free nodes of several racks are no room for a segment", pods: []int{0, 9, 9, 0, 2, 9}, needs: []int{2},
			want: []string{"n3", "n4", "n5"}, ends: 2},
		{name: "no more nodes are kept than allowed", pods: []int{0, 1, 9, 0, 2, 3}, needs: []int{2, 2}, most: 4,
			want: []string{"n0", "n1", "n3", "n4"}, ends: 3},
		{name: "and nothing if that is too few", pods: []int{0, 1, 9, 0, 2, 3}, needs: []int{2, 2}, most: 3},
		{name: "a group stays in its rack", pods: []int{4, 4, 9, 0, 1, 9}, kept: []int{0, 1}, needs: []int{2},
			want: []string{"n0", "n1", "n2"}, ends: 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := &Problem{MaxNodes: 9, Classes: []Class{{Count: 9}}}
			if tc.most > 0 {
				p.MaxNodes = tc.most
			}
			var racks []int
			for n, pods := range tc.pods {
				room := Room{Empty: 1, Pods: pods}
				if pods == 0 {
					room.Now = 1
				}
				p.Nodes = append(p.Nodes, Node{Name: fmt.Sprint("n", n), Rooms: []Room{room}, Kept: slices.Contains(tc.kept, n)})
				racks = append(racks, n/3)
			}
			p.Tree = segmentsIn(racks, tc.needs...)
			got, ok := Choose(p)
			var names []string
			for _, place := range got.Places {
				names = append(names, place.Node)
			}
			if diff := gocmp.Diff(tc.want, names); diff != "" || ok != (tc.want != nil) || got.Pods != tc.ends ||
				got.Ready != (ok && tc.ends == 0) {
				t.Errorf("%t, ready %t, %d pods to end, want %d; nodes (-want +got):\n%s", ok, got.Ready, got.Pods, tc.ends, diff)
			}
		})
	}
}

// Members of two shapes share nodes as far as there is enough of what both ask for.
func TestChooseBySetSharesNodes(t *testing.T) {
	t.Parallel()
	node := func(name string, free int64) Node {
		return Node{Name: name, Free: [2][]int64{{free}, {8}}, Rooms: []Room{{Now: int(free / 6), Empty: 1, Pods: 1},
			{Now: int(free / 2), Empty: 4, Pods: 1}}}
	}
	p := &Problem{MaxNodes: 9, Classes: []Class{{Count: 1}, {Count: 2, Shape: 1}},
		Nodes: []Node{node("a", 6), node("b", 8), node("c", 2)}, Tree: segmentsIn([]int{0, 1, 1}, 1)}
	p.Tree.Asks, p.Tree.Sets[0].Need, p.Tree.Sets[1].Need = [][]int64{{6}, {2}}, []int{0, 0}, []int{1, 2}
	got, ok := Choose(p)
	want := Choice{Places: []Place{{"b", 0, 1}, {"b", 1, 1}, {"c", 1, 1}}, Ready: true}
	if diff := gocmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%t (-want +got):\n%s", ok, diff)
	}
}

// What is kept for segments is enough for each in one rack, on nodes that are not over-committed.
func TestWhatIsKeptForSegmentsIsEnough(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(8, 1)).IntN
	kept := 0
	for i := range 2000 {
		p := &Problem{MaxNodes: 1 + draw(8), Classes: []Class{{Count: 9}}}
		racks := make([]int, 3+draw(6))
		for n := range racks {
			racks[n] = draw(3)
			empty := draw(4)
			p.Nodes = append(p.Nodes, Node{Name: fmt.Sprint("n", n), Kept: draw(4) == 0,
				Domain: draw(9) - 1, Rooms: []Room{{Now: draw(empty + 1), Empty: empty, Pods: 1 + draw(3)}}})
		}
		needs := []int{1 + draw(3), 1 + draw(2)}
		p.Tree = segmentsIn(racks, needs...)
		got, ok := Choose(p)
		if !ok {
			continue
		}
		kept++
		if len(got.Places) > p.MaxNodes {
			t.Fatalf("case %d: %d nodes are kept of %d", i, len(got.Places), p.MaxNodes)
		}
		room := map[int]int{}
		for _, place := range got.Places {
			n := slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == place.Node })
			if place.Count > p.Nodes[n].Rooms[0].Empty || p.Nodes[n].Domain < 0 {
				t.Fatalf("case %d: %d members on %+v", i, place.Count, p.Nodes[n])
			}
			room[racks[n]] += place.Count
		}
		fits := false
		for a := range 3 {
			for b := range 3 {
				both := map[int]int{a: needs[0]}
				both[b] += needs[1]
				fits = fits || room[a] >= both[a] && room[b] >= both[b]
			}
		}
		if !fits {
			t.Fatalf("case %d: %v in racks for segments of %v", i, room, needs)
		}
	}
	if kept < 500 {
		t.Errorf("something is kept in %d of 2000 cases only", kept)
	}
}
