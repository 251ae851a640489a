package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func node(slots int, within ...string) Node { return Node{Within: within, Slots: slots} }

func names(domains []Domain) []string {
	var out []string
	for _, d := range domains {
		out = append(out, d.Name)
	}
	return out
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	nodes := []Node{
		node(2, "z1", "r1"), node(2, "z1", "r1"), node(2, "z1", "r2"), node(1, "z1", "r2"),
		node(8, "z2", "r3"), node(2, "z2", ""), node(9, "", "r9"),
	}
	for _, tc := range []struct {
		name             string
		tightest, widest int
		need, want       int
		names            []string
	}{
		{"the rack that is filled best comes first", 1, 1, 3, 3, []string{"r2", "r1", "r3"}},
		{"racks that are too small are left out", 1, 1, 4, 4, []string{"r1", "r3"}},
		{"racks are tried before zones", 1, 0, 5, 5, []string{"r3", "z1", "z2"}},
		{"the cluster comes last", 1, -1, 9, 9, []string{"z2", ""}},
		{"a domain for all comes before one for those that are needed", 1, 1, 3, 4, []string{"r1", "r3", "r2"}},
		{"nothing is wide enough", 1, 0, 30, 30, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.names, names(Candidates(nodes, tc.tightest, tc.widest, tc.need, tc.want))); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEqualNamesInDifferentParentsAreDifferentDomains(t *testing.T) {
	t.Parallel()
	nodes := []Node{node(1, "z1", "r"), node(1, "z2", "r")}
	if got := len(Domains(nodes, 1)); got != 2 {
		t.Errorf("%d domains, want 2", got)
	}
}

// Domains of a level never share a node, and their slots are those of their nodes.
func TestDomainsAreAPartition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "a", "b", "ab"})
		nodes := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Node {
			return node(rapid.IntRange(0, 9).Draw(t, "slots"), name.Draw(t, "zone"), name.Draw(t, "rack"))
		})).Draw(t, "nodes")
		for level := -1; level < 2; level++ {
			seen := map[int]bool{}
			for _, d := range Domains(nodes, level) {
				slots := 0
				for _, n := range d.Nodes {
					if seen[n] {
						t.Fatalf("node %d lies in two domains of level %d", n, level)
					}
					seen[n] = true
					slots += nodes[n].Slots
				}
				if slots != d.Slots {
					t.Fatalf("domain %q counts %d slots, its nodes have %d", d.Name, d.Slots, slots)
				}
			}
			for i, n := range nodes {
				if level >= 0 && !seen[i] && n.Within[0] != "" && (level == 0 || n.Within[1] != "") {
					t.Fatalf("node %d is in no domain of level %d", i, level)
				}
			}
		}
	})
}
