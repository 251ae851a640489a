package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// cluster is 5,000 nodes in ten blocks of 20 racks of 25 nodes, in cliques of five, some of them partly taken.
func cluster(seed uint64) []Node {
	random := rand.New(rand.NewPCG(seed, 0))
	var out []Node
	for b := range 10 {
		for r := range 20 {
			for n := range 25 {
				out = append(out, Node{
					Path:  []string{fmt.Sprint("block-", b), fmt.Sprint("rack-", r), fmt.Sprint("clique-", n/5)},
					Slots: []int{random.IntN(9)},
				})
			}
		}
	}
	return out
}

// The number of arrangements and of nodes in them stays within bounds, at 5,000 nodes, too.
func TestArrangementsAreBounded(t *testing.T) {
	t.Parallel()
	all := cluster(1)
	for _, required := range []int{0, 1, 2, 3} {
		roots := []int{1, 10, 200, 1000}[required]
		for _, want := range []int{1, 8, 64, 512, 4096, 19000} {
			arrangements := Arrange(all, required, Demand{Want: []int{want}, Need: 1})
			listed := 0
			for _, a := range arrangements {
				for _, set := range a {
					listed += len(set)
				}
			}
			if most := mostArrangements + roots; len(arrangements) > most {
				t.Errorf("%d required levels, %d members: %d arrangements, want at most %d", required, want, len(arrangements),
					most)
			}
			// The one that passes the bound is still returned.
			if most := (mostScans + 2) * len(all); listed > most {
				t.Errorf("%d required levels, %d members: %d nodes in all arrangements, want at most %d", required, want, listed,
					most)
			}
		}
	}
}
