package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nodes reads a tree from words of the form path=slots*count, such as b1/r1/c1=8*4: four nodes with eight slots each.
// A name of - is no name; slots of several classes are joined by +, and ! after them is a member that the first node
// holds.
func nodes(t testing.TB, words string) []Node {
	t.Helper()
	var out []Node
	for word := range strings.FieldsSeq(words) {
		path, rest, _ := strings.Cut(word, "=")
		slots, repeat, _ := strings.Cut(rest, "*")
		count := 1
		if repeat != "" {
			if _, err := fmt.Sscan(repeat, &count); err != nil {
				t.Fatalf("reading %q: %v", word, err)
			}
		}
		bare := strings.TrimRight(slots, "!")
		n := Node{Held: len(slots) - len(bare)}
		for _, name := range strings.Split(path, "/") {
			n.Path = append(n.Path, strings.TrimPrefix(name, "-"))
		}
		for _, class := range strings.Split(bare, "+") {
			var number int
			if _, err := fmt.Sscan(class, &number); err != nil {
				t.Fatalf("reading %q: %v", word, err)
			}
			n.Slots = append(n.Slots, number)
		}
		for range count {
			out = append(out, n)
			n.Held = 0
		}
	}
	return out
}

// describe names the domains of an arrangement in order, with the number of nodes of each set.
func describe(nodes []Node, arrangements []Arrangement) []string {
	var out []string
	for _, a := range arrangements {
		var sets []string
		for _, set := range a {
			// The path of a set that joins nodes on their own is what these share.
			path := slices.Clone(nodes[set[0]].Path)
			for level := range path {
				for _, n := range set {
					if nodes[n].Path[level] != path[level] || path[level] == "" {
						path[level] = "-"
					}
				}
			}
			sets = append(sets, fmt.Sprintf("%s*%d", strings.Join(path, "/"), len(set)))
		}
		out = append(out, strings.Join(sets, " "))
	}
	return out
}

// members is a demand for members of one class that are all needed.
func members(n int) Demand { return Demand{Want: []int{n}, Need: n} }

func TestOrderOfArrangements(t *testing.T) {
	t.Parallel()
	const racks = "z1/r1=2*2 z1/r2=2 z1/r2=1 z2/r3=8"
	for _, tc := range []struct {
		name     string
		nodes    string
		required int
		demand   Demand
		want     []string
	}{
		// What the members talk to.
		{"a required rack that is filled best comes first", "r1=2*2 r2=2 r2=1 r3=8", 1, members(3),
			[]string{"r2*2", "r1*2", "r3*1"}},
		{"required racks that are too small are left out", "r1=2*2 r2=2 r2=1 r3=8", 1, members(4),
			[]string{"r1*2", "r3*1"}},
		{"a domain for all comes before one for those that are needed", "r1=2*2 r2=2 r2=1 r3=8", 1,
			Demand{Want: []int{4}, Need: 3}, []string{"r1*2", "r3*1", "r2*2"}},
		{"where no domain is large enough the largest is returned", "r1=2*2 r2=2 r2=1 r3=8", 1, members(9),
			[]string{"r3*1"}},
		{"racks of the same room come by name, whatever the order of nodes", "b=4 a=4 c=4", 1, members(4),
			[]string{"a*1", "b*1", "c*1"}},
		{"a preferred rack is tried before all nodes", "r1=2*2 r2=2 r2=1 r3=8", 0, members(4),
			[]string{"r1*2", "r3*1", "r1*2 r3*1 r2*2"}},
		{"a group that no rack holds is split over the fewest, and what fits best comes last", "a=4 b=4 c=3 d=2 e=0", 0,
			members(6), []string{"a*1 d*1", "a*1 c*1", "b*1 c*1", "a*1 b*1", "a*1 b*1 c*1 d*1 e*1"}},
		{"what fits best comes last, out of many, too", "a=19 b=18 c=17 d=16 e=15 f=14 g=13 h=12", 0, members(30),
			[]string{"a*1 h*1", "a*1 e*1", "a*1 d*1", "a*1 c*1", "a*1 b*1", "a*1 b*1 c*1 d*1 e*1 f*1 g*1 h*1"}},
		{"a group that takes all racks is tried once", "a=4 b=4", 0, members(8), []string{"a*1 b*1"}},
		{"a group of which only the minimum fits is tried on all nodes", "a=2 b=4 c=0", 0, Demand{Want: []int{8}, Need: 5},
			[]string{"b*1 a*1 c*1"}},
		{"without levels all nodes are tried", "=4*2 =0", 0, members(3), []string{"-*3"}},

		// Two levels, the wider one required.
		{"members share a zone, and a rack where one is large enough", racks, 1, members(5),
			[]string{"z2/r3*1", "z1/r1*2 z1/r2*2"}},
		{"a zone that has one rack for all comes before one that needs two, even if that leaves less", racks, 1, members(7),
			[]string{"z2/r3*1", "z1/r1*2 z1/r2*2"}},
		{"the zone is not split", racks, 1, members(9), []string{"z2/r3*1"}},
		{"of two required levels the narrower one is not split either", racks, 2, members(4),
			[]string{"z1/r1*2", "z2/r3*1"}},
		{"racks of the same name in different zones are different", "z1/r=4 z2/r=4", 2, Demand{Want: []int{8}, Need: 4},
			[]string{"z1/r*1", "z2/r*1"}},

		// Three levels, uneven.
		{"the clique that fits is found in the largest block", "b1/r1/c1=1*9 b1/r1/c2=1*4 b2/r2/c3=1*5 b2/r3/c4=1*3", 0,
			members(4), []string{"b1/r1/c2*4", "b2/r2/c3*5", "b1/r1/c1*9", "b2/r2/c3*5 b2/r3/c4*3 b1/r1/c2*4 b1/r1/c1*9"}},
		{"of two cliques that fit alike the one in the smaller rack is taken", "b1/r1/c1=4 b1/r1/c2=3 b1/r2/c3=4 b1/r2/c4=1",
			1, members(4), []string{"b1/r2/c3*1", "b1/r1/c1*1", "b1/r2/c3*1 b1/r2/c4*1 b1/r1/c1*1 b1/r1/c2*1"}},
		{"one block with many cliques comes before two blocks with few",
			"b1/r1/c1=2 b1/r1/c2=2 b1/r2/c3=2 b1/r2/c4=2 b2/r3/c5=7 b3/r4/c6=7", 0, members(8),
			[]string{"b1/r1/c1*1 b1/r1/c2*1 b1/r2/c3*1 b1/r2/c4*1",
				"b1/r1/c1*1 b1/r1/c2*1 b1/r2/c3*1 b1/r2/c4*1 b2/r3/c5*1 b3/r4/c6*1"}},
		{"fewer racks come before fewer cliques", "b1/r1/c1=2 b1/r1/c2=2 b1/r1/c3=2 b1/r2/c4=5 b1/r3/c5=5", 1, members(6),
			[]string{"b1/r1/c1*1 b1/r1/c2*1 b1/r1/c3*1", "b1/r1/c1*1 b1/r1/c2*1 b1/r1/c3*1 b1/r2/c4*1 b1/r3/c5*1"}},
		{"the domains of one block follow each other, large ones first",
			"b1/r1/c1=3 b2/r2/c2=4 b1/r3/c3=2 b2/r4/c4=6", 0, members(15),
			[]string{"b2/r4/c4*1 b2/r2/c2*1 b1/r1/c1*1 b1/r3/c3*1"}},

		// Labels that are missing.
		{"a node without a required label is out", "r1=2 -=8 r2=0", 1, members(2), []string{"r1*1"}},
		{"without a label on any node all are tried, in no order", "-=1*5", 0, members(4), []string{"-*5"}},
		{"nodes without a preferred label come last where as many domains are used", "-=4 r1=5 -=9", 0, members(4),
			[]string{"r1*1", "r1*1 -*2"}},
		{"a node without a label is better than two racks", "r1=1 r2=1 -=2 -=1", 0, members(2),
			[]string{"-*2", "r1*1 r2*1 -*2"}},
		{"nodes without a label help out where racks do not do", "r1=2 r2=1 -=1*3 r3=0", 0, members(5),
			[]string{"r1*1 r2*1 r3*1 -*3"}},
		{"a node without a rack is in its block all the same", "b1/r1=2 b1/-=2 b2/r2=3", 1, members(4),
			[]string{"b1/r1*1 b1/-*1"}},

		// Members that have a place.
		{"the others join in a required domain, though another fits better", "r1=9! r2=2", 1, members(2), []string{"r1*1"}},
		{"the others join where most are", "r1=9! r2=2!!", 1, members(2), []string{"r2*1"}},
		{"a full required domain is returned to tell what is missing", "r1=0! r2=2", 1, members(2), []string{"r1*1"}},
		{"the others should join in a preferred domain", "r1=9! r2=2", 0, members(2), []string{"r1*1", "r1*1 r2*1"}},
		{"those that find no room in their preferred rack stay in its block", "b1/r1=1! b1/r2=3 b1/r3=2 b2/r4=3", 0,
			members(3), []string{"b1/r1*1 b1/r3*1", "b1/r1*1 b1/r2*1", "b1/r1*1 b1/r2*1 b1/r3*1 b2/r4*1"}},
		{"a full rack is not filled", "r1=0! r2=2 r3=3", 0, members(2), []string{"r2*1", "r3*1", "r1*1 r2*1 r3*1"}},

		// Several classes.
		{"a rack has room for each class", "r1=8+0 r2=4+1 r3=0+9", 1, Demand{Want: []int{4, 1}, Need: 5}, []string{"r2*1"}},
		{"racks complement each other", "r1=8+0 r2=2+1 r3=0+9 r4=3+0", 0, Demand{Want: []int{4, 2}, Need: 6},
			[]string{"r1*1 r3*1", "r1*1 r2*1 r4*1 r3*1"}},
		{"fit is measured by the first class", "r1=9+2 r2=5+99", 1, Demand{Want: []int{4, 1}, Need: 5},
			[]string{"r2*1", "r1*1"}},

		// Nothing to arrange.
		{"no nodes, and a level is required", "", 1, members(2), nil},
		{"no nodes, and a level is preferred", "", 0, members(2), nil},
		{"no node that has the label", "-=2", 1, members(2), nil},
		{"no members", "r1=2 r2=3", 0, Demand{}, []string{"r1*1 r2*1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			all := nodes(t, tc.nodes)
			if diff := cmp.Diff(tc.want, describe(all, Arrange(all, tc.required, tc.demand))); diff != "" {
				t.Errorf("arrangements (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDomainsBesideWhoseMembersTheWantedOnesBelongAreFilledFirst(t *testing.T) {
	t.Parallel()
	list := nodes(t, "r1=1!*1 r1=1!*1 r1=1*2 r2=1!*1 r2=1*1") //nolint:dupword // two nodes that are alike
	list[4].Beside = 1
	got := describe(list, Arrange(list, 0, members(1)))
	if want := "r2*2"; len(got) == 0 || !strings.HasPrefix(got[0], want) {
		t.Errorf("the arrangements are %q, want the first to begin with %q", got, want)
	}
}
