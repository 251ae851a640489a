package steps

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/pkg/tree"
)

// none is no member of any role.
func none(string) int { return 0 }

func TestStepsOfNumbers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size                  Size
		minimum, have         int
		wantTaken, wantFollow int
	}{
		"a gang that doubles begins with its minimum":               {Double, 2, 0, -1, 2},
		"it goes on to twice as many":                               {Double, 2, 2, 0, 4},
		"what is beyond a step does not count as one":               {Double, 2, 7, 1, 8},
		"a minimum of one doubles as well":                          {Double, 1, 3, 1, 4},
		"a minimum that is no power of two is doubled":              {Double, 3, 11, 1, 12},
		"a number is added to the minimum":                          {"8", 4, 12, 1, 20},
		"of what was lost the step is filled up again":              {"8", 4, 11, 0, 12},
		"without a size every number of members will do":            {"", 4, 5, 0, 6},
		"without a size the minimum is what a gang has to begin on": {"", 4, 1, -1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Ladder{tree.Minimum{Total: tc.minimum}, tc.size}
			taken, follow := l.Reached(tc.have, none), l.Next(tc.have, none).Total
			if taken != tc.wantTaken || follow != tc.wantFollow {
				t.Errorf("%d members of a minimum of %d by %s: %d steps, then %d; want %d, then %d", tc.have, tc.minimum,
					tc.size, taken, follow, tc.wantTaken, tc.wantFollow)
			}
		})
	}
}

// leaf is a group of pods.
func leaf(name string, pods int) tree.Group {
	return tree.Group{Name: name, Roles: map[string]int{name: pods}}
}

// copies are copies of group c of two pods, some of them needed.
func copies(n, least int) tree.Group {
	g := tree.Group{Name: "c", Copies: true, Least: least}
	for i := range n {
		g.Groups = append(g.Groups, leaf(fmt.Sprint("c-", i), 2))
	}
	return g
}

// of is what a gang of these groups needs.
func of(groups ...tree.Group) tree.Minimum {
	m := tree.Minimum{Tree: &tree.Group{Least: len(groups), Groups: groups}, Roles: map[string]int{}}
	m.Tree.Always(m.Roles)
	m.Total = m.Members()
	return m
}

func TestStepsOfGroupsAndRoles(t *testing.T) {
	t.Parallel()
	roles := tree.Minimum{Total: 5, Roles: map[string]int{"decode": 4, "prefill": 1}}
	inner := leaf("inner", 1)
	inner.Groups, inner.Least = []tree.Group{leaf("x", 1), leaf("y", 3)}, 1
	within := tree.Group{Name: "replica", Roles: map[string]int{"replica/decode": 4, "replica/prefill": 1}}
	for name, tc := range map[string]struct {
		minimum tree.Minimum
		by      Size
		want    string
	}{
		"a ratio adds members of roles":        {roles, "decode=4,prefill=1", "10 (decode=8, prefill=2)"},
		"a number counts members of any role":  {roles, "3", "8 (decode=4, prefill=1)"},
		"of copies whole ones count":           {of(copies(4, 1), leaf("r", 1)), "c=2", "7 (3 of 4 c (2 pods), r (1 pod))"},
		"of a group without copies members do": {of(copies(4, 1), leaf("r", 1)), "r=2", "5 (1 of 4 c (2 pods), r (3 pods))"},
		"both may be a ratio": {of(copies(4, 1), leaf("r", 1)), "c=1,r=1",
			"6 (2 of 4 c (2 pods), r (2 pods))"},
		"the one group of a gang needs no name": {of(copies(4, 1)), "2", "6 (3 of 4 c (2 pods))"},
		"it can double":                         {of(copies(4, 2)), Double, "8 (4 of 4 c (2 pods))"},
		"a role can be one of a group": {of(within), "replica/decode=2,replica/prefill=1",
			"8 (replica (decode=6, prefill=2))"},
		"groups that may be missing in part":     {of(inner), "inner=1", "5 (inner (1 pod, x (1 pod), y (3 pods)))"},
		"without a size there is no second step": {roles, "", "5 (decode=4, prefill=1)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Ladder{tc.minimum, tc.by}
			before := tc.minimum.String()
			if wrong := l.Wrong(); wrong != "" {
				t.Fatalf("it is not %s", wrong)
			}
			if got := l.At(1).String(); got != tc.want {
				t.Errorf("the first step needs %s, want %s", got, tc.want)
			}
			if now := tc.minimum.String(); now != before {
				t.Errorf("the minimum was %s and is %s", before, now)
			}
		})
	}
}

func TestSizesThatDoNotSuitAGang(t *testing.T) {
	t.Parallel()
	nested := of(copies(4, 1), leaf("r", 0))
	for by, want := range map[Size]string{
		"2":      "numbers by group, such as c=2",
		"none=1": "roles that have a minimum, or groups that are in no copies; none is neither",
		"c-0=1":  "c-0 is neither",
		"c=1":    "",
	} {
		l := Ladder{nested, by}
		if wrong := l.Wrong(); (want == "") != (wrong == "") || !strings.Contains(wrong, want) {
			t.Errorf("%s: want %q, got %q", by, want, wrong)
		}
		if l.Climbs() != (want == "") {
			t.Errorf("by %s the gang grows: %t", by, l.Climbs())
		}
	}
	if wrong := (Ladder{of(leaf("r", 0)), Double}).Wrong(); !strings.Contains(wrong, "no minimum to double") {
		t.Errorf("a minimum of none doubles: %q", wrong)
	}
}

// drawLadder draws a gang that grows by steps, with the roles that its members have.
func drawLadder(t *rapid.T) (l Ladder, roles []string) {
	numbers := rapid.SampledFrom([]Size{Double, "2", "3", "5"})
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return Ladder{tree.Minimum{Total: rapid.IntRange(1, 6).Draw(t, "minimum")}, numbers.Draw(t, "size")}, []string{""}
	case 1:
		few := rapid.IntRange(1, 4)
		m := tree.Minimum{Roles: map[string]int{"a": few.Draw(t, "a"), "b": few.Draw(t, "b")}}
		m.Total = m.Members() + rapid.IntRange(0, 2).Draw(t, "more")
		return Ladder{m, rapid.SampledFrom([]Size{"a=2,b=1", "a=1", "3"}).Draw(t, "size")}, []string{"a", "b", "c"}
	case 2:
		m := of(copies(5, rapid.IntRange(1, 3).Draw(t, "least")))
		l = Ladder{m, numbers.Draw(t, "size")}
	default:
		m := of(copies(5, rapid.IntRange(0, 3).Draw(t, "least")), leaf("r", rapid.IntRange(0, 2).Draw(t, "pods")))
		l, roles = Ladder{m, rapid.SampledFrom([]Size{"c=1,r=2", "c=2", "r=1"}).Draw(t, "size")}, []string{"r"}
	}
	for i := range 5 {
		roles = append(roles, fmt.Sprint("c-", i))
	}
	return l, roles
}

// count returns how many members have a role.
func count(members []string) func(string) int {
	return func(role string) (n int) {
		for _, of := range members {
			if of == role {
				n++
			}
		}
		return n
	}
}

func TestStepsAreThoseOfTheLadder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, roles := drawLadder(t)
		have := rapid.SliceOfN(rapid.SampledFrom(roles), 0, 30).Draw(t, "members")
		slow := -1
		for at := range 40 {
			if l.At(at).MetBy(len(have), count(have)) {
				slow = at
			}
		}
		if slow == 39 && l.By != Double {
			t.Fatalf("%q climb on and on", have)
		}
		at := l.Reached(len(have), count(have))
		if at != slow && l.By != "" {
			t.Fatalf("%q have taken %d steps by %s of %s, want %d", have, at, l.By, l.Minimum, slow)
		}
		if next := l.Next(len(have), count(have)); !next.Equal(l.At(at+1)) || next.MetBy(len(have), count(have)) {
			t.Fatalf("%q go on to %s", have, next)
		}
		if high := l.At(at + 1); high.Total < l.At(max(at, 0)).Total {
			t.Fatalf("step %d needs fewer than the one before", at+1)
		}
	})
}

func TestAGangEndsOnAStep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, roles := drawLadder(t)
		placed := rapid.SliceOfN(rapid.SampledFrom(roles), 0, 10).Draw(t, "placed")
		more := rapid.SliceOfN(rapid.SampledFrom(roles), 0, 25).Draw(t, "more")
		all := slices.Concat(placed, more)
		at := l.Reached(len(all), count(all))
		beyond := l.Beyond(len(placed), count(placed), more)
		if at < 0 && len(beyond) > 0 {
			t.Fatalf("less than the minimum spares %d members", len(beyond))
		}
		if !slices.IsSortedFunc(beyond, func(a, b int) int { return b - a }) {
			t.Fatalf("the last ones do not come first: %v", beyond)
		}
		kept := slices.Clone(more)
		for _, i := range beyond {
			kept = slices.Delete(kept, i, i+1)
		}
		reaches := func(more []string) int {
			all := slices.Concat(placed, more)
			return l.Reached(len(all), count(all))
		}
		if now := reaches(kept); now != at {
			t.Fatalf("without %v, %q and %q have taken %d steps, want %d", beyond, placed, more, now, at)
		}
		for i := range kept {
			if at >= 0 && reaches(slices.Delete(slices.Clone(kept), i, i+1)) == at {
				t.Fatalf("%q of %q is beyond step %d of %s by %s, besides %q", kept[i], kept, at, l.Minimum, l.By, placed)
			}
		}
	})
}

func TestTheLastStepOfAGang(t *testing.T) {
	t.Parallel()
	l := Ladder{of(copies(3, 1)), "2"}
	all := func(string) int { return math.MaxInt }
	if l.At(1).MetBy(math.MaxInt, all) == l.At(2).MetBy(math.MaxInt, all) {
		t.Error("three copies allow one step of two, and no second")
	}
}
