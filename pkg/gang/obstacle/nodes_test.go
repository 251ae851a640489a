package obstacle

import "testing"

func TestTheKindOfNodesIsThatOfThoseThatThePodAdmits(t *testing.T) {
	t.Parallel()
	selector := NodeCause{Message: "no match", Kind: "no match", Own: true, Nodes: 30}
	short := NodeCause{Short: "gpu", Nodes: 2}
	for name, test := range map[string]struct {
		nodes Nodes
		want  string
	}{
		"nodes that the pod does not want do not count beside others": {Nodes{selector, short},
			"nodes with too little free gpu"},
		"nor do those that have too little when they are empty": {Nodes{{Short: "cpu", Most: "2", Nodes: 9}, short},
			"nodes with too little free gpu"},
		"if it wants none they count":             {Nodes{selector, {Short: "cpu", Most: "2", Nodes: 9}}, "nodes: no match"},
		"nodes on which it fits keep it off none": {Nodes{selector, {Fits: true, Nodes: 40}}, "nodes: no match"},
		"what concerns no node comes first": {
			Nodes{{Message: "no quota", Kind: "no quota"}, selector, short}, "no quota"},
	} {
		if got := test.nodes.Kind(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
