package starts

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
		{"no node to spare beyond what may be kept",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 2,
				Nodes: []Node{room("a", 8, 0), room("b", 1, 0), room("c", 3, 0), room("d", 2, 0)}},
			Choice{Places: places("b", "d"), Pods: 3}, false},
		{"of equal nodes those that are kept already",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 2,
				Nodes: []Node{room("a", 2, 0), kept(room("b", 2, 0)), room("c", 2, 0), kept(room("d", 2, 0))}},
			Choice{Places: places("b", "d"), Pods: 4}, false},
		{"of nodes with as many pods those with the most free",
			Problem{Need: gang.Minimum{Total: 1}, Classes: []Class{{Count: 1}}, MaxNodes: 1,
				Nodes: []Node{room("a", 1, 0), room("b", 1, 500)}},
			Choice{Places: places("b"), Pods: 1}, false},
		{"more nodes than may be kept",
			Problem{Need: gang.Minimum{Total: 2}, Classes: two, MaxNodes: 1, Nodes: []Node{room("a", 1, 0), room("b", 1, 0)}},
			Choice{}, true},
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
