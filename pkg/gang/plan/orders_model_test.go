package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/test/harness/require"
)

// randomInstance draws a group of a few classes, some of them with roles, and nodes; some nodes are not for all. With
// both set, both resources are scarce.
func randomInstance(draw func(n int) int, both bool) *instance {
	second := func(n int) int {
		if both {
			return draw(n)
		}
		return 0
	}
	in := &instance{bins: bins{free: map[string]amounts{}, sizes: map[string]amounts{}, barred: map[string]bool{}}}
	classes := 1 + draw(4)
	for c := range classes {
		in.bins.sizes[fmt.Sprint("c", c)] = amounts{1 + draw(6), second(7)}
	}
	for i := range 1 + draw(8) {
		in.members = append(in.members, changed(i, func(m *gang.Member) {
			m.Class = fmt.Sprint("c", draw(classes))
			m.Role = []string{"", "leader", "worker"}[draw(3)]
		}))
	}
	for n := range 1 + draw(5) {
		in.bins.free[fmt.Sprint("n", n)] = amounts{draw(9), second(9)}
		for c := range classes {
			if draw(6) == 0 {
				in.bins.barred[fmt.Sprintf("c%d@n%d", c, n)] = true
			}
		}
	}
	in.need.Total = draw(len(in.members) + 1)
	if draw(3) == 0 {
		in.need.Roles = map[string]int{"leader": draw(2), "worker": draw(3)}
	}
	return in
}

// What is called feasible can be carried out: each member once, on nodes that have room for it, enough for the minimum.
func TestOrdersNeverCallsFeasibleWhatIsNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := randomInstance(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "draw") }, rapid.Bool().Draw(t, "both"))
		before := slices.Clone(in.members)
		r, err := in.build()
		require.NoError(t, err)
		if diff := cmp.Diff(before, in.members); diff != "" {
			t.Fatalf("the members were reordered (-before +after):\n%s", diff)
		}
		check, _ := in.board()
		byUID := map[gang.UID]gang.Member{}
		for _, m := range in.members {
			byUID[m.UID] = m
		}
		roles, fits := map[string]int{}, map[string]int{}
		for _, a := range r.Assignments {
			m, known := byUID[a.UID]
			if !known || !check.fits(m.Class, a.Node) {
				t.Fatalf("%s on %s: known and placed once %t, room %v", a.UID, a.Node, known, check.free[a.Node])
			}
			delete(byUID, a.UID)
			check.free[a.Node] = check.free[a.Node].less(in.bins.sizes[m.Class])
			roles[m.Role]++
			fits[m.Class]++
		}
		if enough := in.need.MetBy(len(r.Assignments), func(role string) int { return roles[role] }); enough != r.Feasible() {
			t.Fatalf("feasible %t, the assignments are enough for %s: %t", r.Feasible(), in.need, enough)
		}
		wanted := map[string]int{}
		for _, m := range in.members {
			wanted[m.Class]++
		}
		for _, s := range r.Short {
			if s.Wanted != wanted[s.Class] || s.Fits != fits[s.Class] || s.Fits >= s.Wanted {
				t.Fatalf("%+v, wanted %d and placed %d", s, wanted[s.Class], fits[s.Class])
			}
			delete(wanted, s.Class)
		}
		for class, n := range wanted {
			if fits[class] != n {
				t.Fatalf("class %s is short and not listed: %d of %d", class, fits[class], n)
			}
		}
	})
}

// A feasible plan can be missed. How often is measured against brute force, on small instances that are hard on
// purpose.
func TestOrdersMissesFewPlans(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// tight raises the minimum to the largest that can be met, both makes two resources scarce.
		tight, both bool
		// most is how many of 10,000 feasible plans may be missed.
		most int
	}{
		{"as they are drawn", false, false, 20},
		{"with the largest minimum that can be met", true, false, 60},
		{"two resources, as they are drawn", false, true, 20},
		{"two resources, with the largest minimum that can be met", true, true, 40},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 2))
			feasible, missed := 0, 0
			for range 5000 {
				in := randomInstance(random.IntN, tc.both)
				if tc.tight {
					for in.need.Total = len(in.members); in.need.Total > 0 && !in.feasible(); {
						in.need.Total--
					}
				}
				if in.need.Total == 0 || !in.feasible() {
					continue
				}
				feasible++
				if r, err := in.build(); err != nil || !r.Feasible() {
					missed++
				}
			}
			t.Logf("missed %d of %d feasible plans", missed, feasible)
			if missed*10000 > feasible*tc.most {
				t.Errorf("missed %d of %d feasible plans, want at most %d in 10,000", missed, feasible, tc.most)
			}
		})
	}
}
