package gang

import (
	"math/rand/v2"
	"testing"
)

func TestExplore(t *testing.T) {
	for _, tc := range []struct {
		name string
		most size
		n    int
	}{
		{"single no budgets no groups", size{4, 8, 0, 1, 4, 0}, 20000},
		{"single groups", size{4, 8, 2, 1, 4, 0}, 20000},
		{"single groups budgets", size{4, 8, 2, 1, 4, 2}, 20000},
		{"single budgets larger", size{6, 11, 2, 1, 5, 2}, 3000},
		{"multi", size{4, 8, 2, 3, 3, 1}, 20000},
	} {
		feasible, missed, optimal, evicting, needless, sparable := 0, 0, 0, 0, 0, 0
		for seed := range tc.n {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			p := drawProblem(func(_ string, least, most int) int { return least + r.IntN(most-least+1) }, tc.most)
			e := evict(p, 0)
			best := bruteForce(p)
			if best == nil {
				if e.Outcome != NoRoom {
					t.Fatalf("%s: seed %d: found %v where there is nothing", tc.name, seed, e)
				}
				continue
			}
			feasible++
			if e.Outcome == NoRoom {
				missed++
				if missed <= 2 {
					t.Logf("seed %d: %+v\n%+v\nbest %v", seed, *p, e, best)
				}
				continue
			}
			k := reckoning{p, make([]bool, len(p.Victims))}
			for _, v := range e.Victims {
				k.gone[v] = true
			}
			if s := k.illegal(); s != "" {
				t.Fatalf("seed %d: %s %+v \n%+v", seed, s, *p, e)
			}
			if _, ok := k.fits(); !ok {
				t.Fatalf("seed %d: does not fit", seed)
			}
			if k.sparable() != "" {
				sparable++
			}
			if len((reckoning{p, best}).cost()) > 0 {
				evicting++
				if compareReckoned(k.cost(), reckoning{p, best}.cost()) == 0 {
					optimal++
				} else if tc.most.classes == 1 {
					t.Logf("seed %d: %+v\n%+v\nbest %v", seed, *p, e, best)
				}
			} else if len(e.Victims) > 0 {
				needless++
			}
		}
		t.Logf("%s: feasible %d missed %d evict %d optimal %d (%.2f%%) needless %d sparable %d", tc.name, feasible, missed, evicting, optimal, 100*float64(optimal)/float64(max(evicting, 1)), needless, sparable)
	}
}
