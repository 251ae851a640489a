package mix

import (
	"math/rand/v2"
	"testing"
)

func TestTheMixFollowsWorkThatChanges(t *testing.T) {
	t.Parallel()
	heavy, light := Class{CPUMilli: 16_000, Count: 1, Milli: WholeMilli}, Class{CPUMilli: 4000, Count: 1,
		Milli: WholeMilli}
	part := func(m *Mix, c Class) float64 {
		for _, p := range m.Distribution().Portions {
			if p.Class == c {
				return p.Fraction
			}
		}
		return 0
	}
	for name, tc := range map[string]struct {
		after       func(i int) Class
		independent bool
		pods        int
		least, most float64
	}{
		"light pods instead of heavy ones are most of it after as many as a node holds": {
			func(int) Class { return light }, true, 24, 0.5, 1},
		"a gang of light pods is no change": {func(int) Class { return light }, false, 24, 0, 0.1},
		"now and then a light pod is none, either": {func(i int) Class {
			if i%20 == 0 {
				return light
			}
			return heavy
		}, true, 200, 0, 0.1},
		"the same CPU, but another model": {func(int) Class {
			return Class{CPUMilli: 16_000, Count: 1, Milli: WholeMilli, Models: "T4"}
		}, true, 24, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := New()
			for range 1000 {
				m.Observe(heavy, Owner{}, true)
			}
			for i := range tc.pods {
				m.Observe(tc.after(i), Owner{}, tc.independent)
			}
			if got := part(m, light); got < tc.least || got > tc.most {
				t.Errorf("light pods are %.2f of the mix, want %v to %v", got, tc.least, tc.most)
			}
			if got := part(m, heavy); tc.after(1) != heavy && tc.independent && got > 0.5 {
				t.Errorf("what came before is still %.2f of the mix", got)
			}
			if !m.Known() {
				t.Error("the mix is no longer known")
			}
		})
	}
}

// TestWorkThatStaysIsNoChange draws twenty thousand pods from one mix of many kinds, and of few.
func TestWorkThatStaysIsNoChange(t *testing.T) {
	t.Parallel()
	for _, kinds := range []int{2, 5, 40} {
		var s shift
		r := rand.New(rand.NewPCG(1, uint64(kinds))) //nolint:gosec // a test
		changes := 0
		for range 20_000 {
			n := min(r.IntN(kinds), r.IntN(kinds))
			if s.observe(Class{CPUMilli: int64(1000 << (n % 5)), Count: 1 + n/5, Milli: WholeMilli}) {
				changes++
			}
		}
		if changes > 0 {
			t.Errorf("%d changes in a mix of %d kinds that stays the same", changes, kinds)
		}
	}
}
