package candidates

import "testing"

func TestEnough(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ nodes, set, want int }{
		"no nodes":                                 {0, 0, 0},
		"a small cluster is looked at whole":       {99, 1, 99},
		"a hundred nodes are the least":            {250, 10, 100},
		"the share falls with the size":            {1000, 0, 420},
		"the share does not fall below 5 percent":  {10_000, 0, 500},
		"a share that is set holds":                {5000, 20, 1000},
		"all nodes":                                {5000, 100, 5000},
		"more than all nodes are all of them":      {5000, 150, 5000},
		"where half of the nodes would be too few": {101, 0, 100},
	} {
		if got := Enough(tc.nodes, tc.set); got != tc.want {
			t.Errorf("%s: of %d nodes at %d%% %d are enough, want %d", name, tc.nodes, tc.set, got, tc.want)
		}
	}
}
