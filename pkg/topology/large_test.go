package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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

// On large uneven trees of two levels, where the fewest racks can be calculated, the search comes within a percent of
// them.
func TestFewestRacksOnLargeTrees(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	slots := map[string]func() int{
		"evenly taken":      func() int { return random.IntN(41) },
		"free or taken":     func() int { return []int{40, random.IntN(6)}[random.IntN(2)] },
		"few are free":      func() int { return []int{30 + random.IntN(10), 1 + random.IntN(4)}[min(random.IntN(5), 1)] },
		"by whole machines": func() int { return 8 * random.IntN(6) },
	}
	for _, name := range slices.Sorted(maps.Keys(slots)) {
		racks, least := 0, 0
		for range 100 {
			var all []Node
			var blocks [][]int
			total := 0
			for b := range 6 + random.IntN(8) {
				block := make([]int, 4+random.IntN(16))
				for r := range block {
					block[r] = slots[name]()
					total += block[r]
					all = append(all, Node{Path: []string{fmt.Sprint("b", b), fmt.Sprint("r", r)}, Slots: []int{block[r]}})
				}
				blocks = append(blocks, block)
			}
			want := 1 + random.IntN(total)
			best := fewestRacks(blocks, len(all), want)
			got := spans(all, usable(all, Arrange(all, 0, Demand{Want: []int{want}, Need: want})[0]))
			if got[0] != best[0] {
				t.Fatalf("%s: %d members on %d blocks, want %d", name, want, got[0], best[0])
			}
			racks, least = racks+got[1], least+best[1]
		}
		if racks*100 > least*101 {
			t.Errorf("%s: %d racks, where %d would do", name, racks, least)
		}
	}
}

// fewestRacks returns the least number of blocks that take all members and the least number of racks within that number
// of blocks, from the most members that any number of racks in any number of blocks takes.
func fewestRacks(blocks [][]int, racks, want int) []int {
	most := make([][]int, len(blocks)+1)
	for b := range most {
		most[b] = slices.Repeat([]int{-1}, racks+1)
	}
	most[0][0] = 0
	for _, block := range blocks {
		block = slices.Sorted(slices.Values(block))
		slices.Reverse(block)
		for b := len(blocks) - 1; b >= 0; b-- {
			for r, members := range most[b] {
				for used, slots := range block {
					if members < 0 || r+used+1 > racks {
						break
					}
					members += slots
					most[b+1][r+used+1] = max(most[b+1][r+used+1], members)
				}
			}
		}
	}
	for b := range most {
		if r := slices.IndexFunc(most[b], func(members int) bool { return members >= want }); r >= 0 {
			return []int{b, r}
		}
	}
	return nil
}
