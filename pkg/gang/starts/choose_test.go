package starts

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
)

// room is a node that any one member fills.
func room(name string, pods, free int) Node {
	now := 0
	if pods == 0 {
		now = 1
	}
	return Node{Name: name, Rooms: []Room{{Now: now, Empty: 1, Pods: pods, Free: free}}}
}

func kept(n Node) Node {
	n.Kept = true
	return n
}

func within(domain int, n Node) Node {
	n.Domain = domain
	return n
}

func places(nodes ...string) []Place {
	var out []Place
	for _, n := range nodes {
		out = append(out, Place{Node: n, Count: 1})
	}
	return out
}

func TestReserve(t *testing.T) {
	t.Parallel()
	two := []Class{{Count: 2}}
	for _, tc := range []struct {
		name    string
		problem Problem
		want    Choice
		none    bool
	}{
		{"the nodes with the fewest pods, and one to spare",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 9,
				Nodes: []Node{room("a", 8, 0), room("b", 1, 0), room("c", 3, 500), room("d", 2, 0)}},
			Choice{Places: places("b", "c", "d"), Pods: 3}, false},
		{"no node to spare where that is not wanted",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 9, NoSpare: true,
				Nodes: []Node{room("a", 8, 0), room("b", 1, 0), room("c", 3, 500), room("d", 2, 0)}},
			Choice{Places: places("b", "d"), Pods: 3}, false},
		{"no node to spare beyond what may be kept",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 2,
				Nodes: []Node{room("a", 8, 0), room("b", 1, 0), room("c", 3, 0), room("d", 2, 0)}},
			Choice{Places: places("b", "d"), Pods: 3}, false},
		{"no node to spare once all that is needed is free",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 9,
				Nodes: []Node{room("a", 0, 1000), room("b", 1, 0), room("c", 0, 1000)}},
			Choice{Places: places("a", "c"), Ready: true}, false},
		{"of equal nodes those that are kept already",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 2,
				Nodes: []Node{room("a", 2, 0), kept(room("b", 2, 0)), room("c", 2, 0), kept(room("d", 2, 0))}},
			Choice{Places: places("b", "d"), Pods: 4}, false},
		{"a node that is nearer to being free replaces one that is kept",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 2,
				Nodes: []Node{room("a", 0, 1000), kept(room("b", 2, 0)), kept(room("c", 1, 0))}},
			Choice{Places: places("a", "c"), Pods: 1}, false},
		{"of nodes with as many pods those with the most free",
			Problem{Need: gang.Minimum{Total: 1}, Classes: []Class{{Count: 1}}, MaxNodes: 1,
				Nodes: []Node{room("a", 1, 0), room("b", 1, 500)}},
			Choice{Places: places("b"), Pods: 1}, false},
		{"more nodes than may be kept",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 1, Nodes: []Node{room("a", 1, 0), room("b", 1, 0)}},
			Choice{}, true},
		{"too few nodes in any domain",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 9,
				Nodes: []Node{within(0, room("a", 1, 0)), within(1, room("b", 1, 0)), within(-1, room("c", 1, 0)),
					within(-1, room("d", 1, 0))}},
			Choice{}, true},
		{"the domain in which the fewest pods have to end",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 2,
				Nodes: []Node{within(0, room("a", 0, 0)), within(0, room("b", 8, 0)), within(1, room("c", 2, 0)),
					within(1, room("d", 2, 0))}},
			Choice{Places: places("c", "d"), Pods: 4}, false},
		{"the domain where something is kept already",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 2,
				Nodes: []Node{within(0, kept(room("a", 0, 0))), within(0, room("b", 8, 0)), within(1, room("c", 2, 0)),
					within(1, room("d", 2, 0))}},
			Choice{Places: places("a", "b"), Pods: 8}, false},
		{"the member that fits on one node only gets it before those that fit on others",
			Problem{Need: gang.Minimum{Total: 2}, MaxNodes: 9, Classes: []Class{{Count: 1}, {Count: 1, Shape: 1}},
				Nodes: []Node{{Name: "a", Rooms: []Room{{Empty: 4, Pods: 1}, {Empty: 1, Pods: 1}}},
					{Name: "b", Rooms: []Room{{Empty: 1, Pods: 3}, {}}}}},
			Choice{Places: []Place{{Node: "a", Class: 1, Count: 1}, {Node: "b", Class: 0, Count: 1}}, Pods: 4}, false},
		{"the member that fits everywhere if one is enough",
			Problem{Need: gang.Minimum{Total: 1}, MaxNodes: 1, Classes: []Class{{Count: 1}, {Count: 1, Shape: 1}},
				Nodes: []Node{{Name: "a", Rooms: []Room{{Empty: 1, Pods: 5}, {Empty: 1, Pods: 5}}},
					{Name: "b", Rooms: []Room{{Empty: 1, Pods: 1}, {}}}}},
			Choice{Places: []Place{{Node: "b", Class: 0, Count: 1}}, Pods: 1}, false},
		{"several members on a node, what is free first",
			Problem{Need: gang.Minimum{Total: 3}, Classes: []Class{{Count: 3}}, MaxNodes: 9,
				Nodes: []Node{{Name: "a", Rooms: []Room{{Now: 1, Empty: 2, Pods: 4}}},
					{Name: "b", Rooms: []Room{{Now: 2, Empty: 2}}}}},
			Choice{Places: []Place{{Node: "a", Count: 1}, {Node: "b", Count: 2}}, Ready: true}, false},
		{"the minimum of each role, on one node if they share it",
			Problem{Need: gang.Minimum{Total: 2, Roles: map[string]int{"leader": 1}}, MaxNodes: 1,
				Classes: []Class{{Role: "leader", Count: 1}, {Role: "worker", Count: 5, Shape: 1}},
				Nodes:   []Node{{Name: "a", Rooms: []Room{{Empty: 2, Pods: 1}, {Empty: 2, Pods: 1}}}}},
			Choice{Places: []Place{{Node: "a", Class: 0, Count: 1}, {Node: "a", Class: 1, Count: 1}}, Pods: 2}, false},
		{"a role that fits nowhere",
			Problem{Need: gang.Minimum{Total: 1, Roles: map[string]int{"leader": 1}}, MaxNodes: 9,
				Classes: []Class{{Role: "leader", Count: 1}, {Role: "worker", Count: 5, Shape: 1}},
				Nodes:   []Node{{Name: "a", Rooms: []Room{{}, {Empty: 2}}}}},
			Choice{}, true},
		{"a class that fits nowhere is made up for by another",
			Problem{Need: gang.Minimum{Total: 1}, MaxNodes: 9, Classes: []Class{{Count: 1}, {Count: 1, Shape: 1}},
				Nodes: []Node{{Name: "a", Rooms: []Room{{}, {Now: 1, Empty: 1}}}}},
			Choice{Places: []Place{{Node: "a", Class: 1, Count: 1}}, Ready: true}, false},
		{"classes of one shape share what is free",
			Problem{Need: gang.Minimum{Total: 2}, MaxNodes: 1, Classes: []Class{{Count: 1}, {Count: 1}},
				Nodes: []Node{{Name: "a", Rooms: []Room{{Now: 1, Empty: 2, Pods: 3}}}}},
			Choice{Places: []Place{{Node: "a", Class: 0, Count: 1}, {Node: "a", Class: 1, Count: 1}}, Pods: 3}, false},
		{"and leave each other what they do not need",
			Problem{Need: gang.Minimum{Total: 2}, MaxNodes: 1, Classes: []Class{{Count: 1}, {Count: 1}},
				Nodes: []Node{{Name: "a", Rooms: []Room{{Now: 2, Empty: 2}}}}},
			Choice{Places: []Place{{Node: "a", Class: 0, Count: 1}, {Node: "a", Class: 1, Count: 1}}, Ready: true}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, ok := Choose(&tc.problem)
			if ok == tc.none {
				t.Fatalf("found is %v, want %v", ok, !tc.none)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reservation (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReserveKeepsToItsLimits draws problems with one class and checks every reservation by the rules.
func TestReserveKeepsToItsLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		need := rapid.IntRange(1, 6).Draw(t, "need")
		p := Problem{Need: gang.Minimum{Total: need},
			Classes:  []Class{{Count: need + rapid.IntRange(0, 2).Draw(t, "surplus")}},
			MaxNodes: rapid.IntRange(0, 8).Draw(t, "max")}
		rooms := map[string]Room{}
		domain := map[string]int{}
		// most is how many members the best domain has room for, if that many nodes may be used.
		for i := range rapid.IntRange(0, 10).Draw(t, "nodes") {
			n := Node{Name: fmt.Sprintf("n%d", i), Domain: rapid.IntRange(-1, 1).Draw(t, "domain"),
				Kept: rapid.Bool().Draw(t, "kept")}
			empty := rapid.IntRange(0, 2).Draw(t, "empty")
			n.Rooms = []Room{{Now: rapid.IntRange(0, empty).Draw(t, "now"), Empty: empty,
				Pods: rapid.IntRange(0, 8).Draw(t, "pods")}}
			rooms[n.Name], domain[n.Name] = n.Rooms[0], n.Domain
			p.Nodes = append(p.Nodes, n)
		}
		got, ok := Choose(&p)
		if !ok {
			for d := range 2 {
				most, used := 0, 0
				for _, n := range p.Nodes {
					if n.Domain == d && n.Rooms[0].Empty > 0 {
						used++
						most += n.Rooms[0].Empty
					}
				}
				if most >= need && used <= p.MaxNodes {
					t.Fatalf("domain %d has room for %d on %d nodes, and nothing was kept", d, most, used)
				}
			}
			return
		}
		total, free, domains := 0, 0, map[int]bool{}
		for _, place := range got.Places {
			total += place.Count
			free += min(place.Count, rooms[place.Node].Now)
			domains[domain[place.Node]] = true
			if place.Count > rooms[place.Node].Empty {
				t.Fatalf("%d members on %s, which has room for %d", place.Count, place.Node, rooms[place.Node].Empty)
			}
		}
		switch {
		case len(domains) > 1 || domains[-1]:
			t.Fatalf("domains %v", domains)
		case len(got.Places) > p.MaxNodes:
			t.Fatalf("%d nodes are kept, %d may be", len(got.Places), p.MaxNodes)
		case total < need || total > need+(need+1)/2:
			t.Fatalf("room for %d members is kept, %d are needed", total, need)
		case got.Ready != (got.Pods == 0):
			t.Fatalf("ready is %v and %d pods have to end", got.Ready, got.Pods)
		case got.Ready && free < need:
			t.Fatalf("ready with room for %d of %d", free, need)
		}
		again, _ := Choose(&p)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("the same problem has another answer:\n%s", diff)
		}
	})
}
