package plan

import (
	"testing"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
)

func TestShortfall(t *testing.T) {
	t.Parallel()
	asks := func(class string) string {
		return map[string]string{"a": "4 gpu", "b": "1 cpu", "a with a label": "4 gpu"}[class]
	}
	one := gang.Demand{Need: gang.Minimum{Total: 1}, Minimum: gang.Minimum{Total: 1}, Members: make([]gang.Member, 1)}
	free := func(have string, nodes int) obstacle.NodeCause {
		return obstacle.NodeCause{Message: "node(s) with too few free GPUs (need 4, have " + have + ")",
			Kind: "node(s) with too few free GPUs", Nodes: nodes}
	}
	says := func(words string, nodes int) obstacle.NodeCause {
		return obstacle.NodeCause{Message: words, Kind: words, Nodes: nodes}
	}
	for _, tc := range []struct {
		name   string
		demand gang.Demand
		short  []Shortage
		placed int
		within string
		nodes  obstacle.Nodes
		want   string
		kind   string
	}{
		{"all members are alike", gang.Demand{Need: gang.Minimum{Total: 8}, Minimum: gang.Minimum{Total: 8},
			Members: make([]gang.Member, 8)}, []Shortage{{"a", 8, 6}}, 6, "", nil,
			"gang ns/one needs 8 × 4 gpu, fits 6; 2 more are needed", "gang does not fit"},
		{"all have to share a domain", gang.Demand{Need: gang.Minimum{Total: 8}, Minimum: gang.Minimum{Total: 8},
			Members: make([]gang.Member, 8)}, []Shortage{{"a", 8, 6}}, 6, "rack", nil,
			"gang ns/one needs 8 × 4 gpu within one rack, fits 6; 2 more are needed", "gang does not fit"},
		{"some are held already", gang.Demand{Need: gang.Minimum{Total: 2}, Minimum: gang.Minimum{Total: 4}, Placed: 2,
			Members: make([]gang.Member, 2)}, []Shortage{{"a", 2, 1}}, 1, "", nil,
			"gang ns/one needs 4 × 4 gpu, fits 3; 1 more is needed", "gang does not fit"},
		{"more exist than are needed", gang.Demand{Need: gang.Minimum{Total: 2}, Minimum: gang.Minimum{Total: 2},
			Members: make([]gang.Member, 3)}, []Shortage{{"a", 3, 1}}, 1, "", nil,
			"gang ns/one needs at least 2 of 3 members, fits 1 (1 of 3 × 4 gpu); 1 more is needed", "gang does not fit"},
		{"another scheduler places some", gang.Demand{Need: gang.Minimum{Total: 3}, Minimum: gang.Minimum{Total: 3},
			Members: make([]gang.Member, 2)}, nil, 2, "", nil,
			"gang ns/one needs 3 members, 1 of them placed by another scheduler, fits 2; 1 more is needed", "gang does not fit"},
		{"several classes are short",
			gang.Demand{Need: gang.Minimum{Total: 4}, Minimum: gang.Minimum{Total: 4, Roles: map[string]int{"leader": 1}},
				Members: make([]gang.Member, 4)},
			[]Shortage{{"a", 2, 0}, {"b", 2, 1}}, 1, "", nil,
			"gang ns/one needs all 4 (leader=1) members, fits 1 (0 of 2 × 4 gpu, 1 of 2 × 1 cpu); 3 more are needed",
			"gang does not fit"},
		{"classes that ask for the same count together", gang.Demand{
			Need: gang.Minimum{Total: 3}, Minimum: gang.Minimum{Total: 3},
			Members: make([]gang.Member, 3)},
			[]Shortage{{"a", 2, 1}, {"a with a label", 1, 0}}, 1, "", nil,
			"gang ns/one needs 3 × 4 gpu, fits 1; 2 more are needed", "gang does not fit"},
		{"so do some of several", gang.Demand{Need: gang.Minimum{Total: 2}, Minimum: gang.Minimum{Total: 2},
			Members: make([]gang.Member, 4)},
			[]Shortage{{"a", 2, 1}, {"b", 1, 0}, {"a with a label", 1, 0}}, 1, "", nil,
			"gang ns/one needs at least 2 of 4 members, fits 1 (1 of 3 × 4 gpu, 0 of 1 × 1 cpu); 1 more is needed",
			"gang does not fit"},
		{"with what keeps them off nodes", one, []Shortage{{"b", 1, 0}}, 0, "",
			obstacle.Nodes{says("node(s) without room", 2), says("claims are missing", 0), {Short: "gpu", Nodes: 3},
				says("node(s) were unschedulable", 1), says("Too many pods", 1)},
			"gang ns/one needs 1 × 1 cpu, fits 0; 1 more is needed (claims are missing, 3 nodes with too little free " +
				"gpu, 2 nodes " +
				"without room, 1 node was unschedulable, 1 node: Too many pods)",
			"gang does not fit: claims are missing"},
		{"nodes that would be too small without pods, too", one, []Shortage{{"a", 1, 0}}, 0, "",
			obstacle.Nodes{{Short: "gpu", Nodes: 2}, {Short: "gpu", Most: "2", Nodes: 4}, {Short: "gpu", Most: "0", Nodes: 3},
				{Short: "cpu", Most: "500m", Nodes: 1}},
			"gang ns/one needs 1 × 4 gpu, fits 0; 1 more is needed (4 nodes with at most 2 gpu, 3 nodes without gpu, 2 nodes " +
				"with too little free gpu, 1 node with at most 500m cpu)", "gang does not fit: nodes with too little free gpu"},
		{"nodes on which a member fits come last", one, []Shortage{{"a", 1, 0}}, 0, "",
			obstacle.Nodes{{Fits: true, Nodes: 5}, {Short: "gpu", Nodes: 2}},
			"gang ns/one needs 1 × 4 gpu, fits 0; 1 more is needed (2 nodes with too little free gpu, 5 nodes that fit)",
			"gang does not fit: nodes with too little free gpu"},
		{"all nodes fit, but there are too few", one, []Shortage{{"a", 1, 0}}, 0, "", obstacle.Nodes{{Fits: true, Nodes: 1}},
			"gang ns/one needs 1 × 4 gpu, fits 0; 1 more is needed (1 node that fits)",
			"gang does not fit: too few nodes that fit"},
		{"most nodes fit, but not in one domain", one, []Shortage{{"a", 1, 0}}, 0, "rack",
			obstacle.Nodes{{Fits: true, Nodes: 5, Message: ", at most 3 in one rack"}, {Short: "gpu", Nodes: 2}},
			"gang ns/one needs 1 × 4 gpu within one rack, fits 0; 1 more is needed (2 nodes with too little free gpu, 5 nodes " +
				"that fit, at most 3 in one rack)", "gang does not fit: too few nodes that fit in one domain"},
		{"causes that differ in amounts alone count together", one, []Shortage{{"a", 1, 0}}, 0, "",
			obstacle.Nodes{{Short: "cpu", Nodes: 4}, free("1", 3), free("2", 2)},
			"gang ns/one needs 1 × 4 gpu, fits 0; 1 more is needed (4 nodes with too little free cpu, 3 nodes with too few " +
				"free GPUs (need 4, have 1), 2 nodes with too few free GPUs (need 4, have 2))",
			"gang does not fit: nodes with too few free GPUs"},
		{"one node counts as a kind of nodes", one, []Shortage{{"a", 1, 0}}, 0, "",
			obstacle.Nodes{says("node(s) were unschedulable", 1)},
			"gang ns/one needs 1 × 4 gpu, fits 0; 1 more is needed (1 node was unschedulable)",
			"gang does not fit: nodes were unschedulable"},
		{"of two causes of as many nodes the first by name is the kind", one, []Shortage{{"a", 1, 0}}, 0, "",
			obstacle.Nodes{{Short: "gpu", Nodes: 2}, {Short: "cpu", Nodes: 2}},
			"gang ns/one needs 1 × 4 gpu, fits 0; 1 more is needed (2 nodes with too little free cpu, 2 nodes with too little " +
				"free gpu)", "gang does not fit: nodes with too little free cpu"},
		{"a cause that concerns no node stands alone", one, []Shortage{{"a", 1, 0}}, 0, "",
			obstacle.Nodes{says("claims are missing", 0)},
			"gang ns/one needs 1 × 4 gpu, fits 0; 1 more is needed (claims are missing)",
			"gang does not fit: claims are missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			count := map[obstacle.NodeCause]int{}
			for _, cause := range tc.nodes {
				n := cause.Nodes
				cause.Nodes = 0
				count[cause] = n
			}
			r := Result{Assignments: make([]gang.Assignment, tc.placed), Short: tc.short}
			got := NewShortfall(gang.ID{Namespace: "ns", Name: "one"}, tc.demand, r, asks, tc.within,
				obstacle.Count(count))
			if got.String() != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if got.Kind() != tc.kind {
				t.Errorf("kind %q, want %q", got.Kind(), tc.kind)
			}
		})
	}
}
