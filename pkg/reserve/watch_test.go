package reserve

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNodesOnWhichNothingEndsAreStuck(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
	}
	node := func(name string, keeps bool, pods, oldest int) Node {
		return Node{Name: name, Kept: keeps, Pods: pods, Oldest: at(oldest)}
	}
	type look struct {
		nodes []Node
		want  []string
	}
	for name, looks := range map[string][]look{
		"all has ended twice on another node": {
			{[]Node{node("a", true, 1, -9), node("b", false, 4, -1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 0)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 3)}, []string{"a"}},
		},
		"until the pods have gone": {
			{[]Node{node("a", true, 1, -9), node("b", false, 4, -1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 2)}, []string{"a"}},
			{[]Node{node("a", false, 1, -9), node("b", true, 4, 2)}, []string{"a"}},
			{[]Node{node("a", false, 1, 4), node("b", true, 4, 2)}, nil},
		},
		"until the node is free": {
			{[]Node{node("a", true, 1, -9), node("b", false, 4, -1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 2)}, []string{"a"}},
			{[]Node{node("a", false, 0, -9), node("b", true, 4, 2)}, nil},
		},
		"not while a pod ends there now and then": {
			{[]Node{node("a", true, 3, -9), node("b", false, 4, -1)}, nil},
			{[]Node{node("a", true, 3, -9), node("b", false, 4, 1)}, nil},
			{[]Node{node("a", true, 2, -9), node("b", false, 4, 2)}, nil},
			{[]Node{node("a", true, 2, -9), node("b", false, 4, 3)}, nil},
			{[]Node{node("a", true, 2, -9), node("b", false, 4, 4)}, []string{"a"}},
		},
		"not if fewer others can take their place": {
			{[]Node{node("a", true, 1, -9), node("b", true, 1, -9), node("c", false, 4, -1), node("d", false, 4, -1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", true, 1, -9), node("c", false, 4, 1), node("d", false, 4, -1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", true, 1, -9), node("c", false, 4, 2), node("d", false, 4, 2)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", true, 1, -9), node("c", false, 4, 2), node("d", false, 4, 3)},
				[]string{"a", "b"}},
		},
		"not if it was kept only now": {
			{[]Node{node("a", false, 1, -9), node("b", false, 4, -1)}, nil},
			{[]Node{node("a", false, 1, -9), node("b", false, 4, 1)}, nil},
			{[]Node{node("a", true, 1, -9), node("b", false, 4, 2)}, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w Watch
			for i, l := range looks {
				w.Look(l.nodes, at(i))
				var got []string
				for _, n := range l.nodes {
					if n.Stuck {
						got = append(got, n.Name)
					}
				}
				if diff := cmp.Diff(l.want, got); diff != "" {
					t.Errorf("stuck at look %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}
