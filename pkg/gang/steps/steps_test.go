package steps

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSteps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size                Size
		minimum, have       int
		wantAt, wantFollows int
	}{
		"a gang that doubles begins with its minimum":               {Double, 2, 0, 0, 2},
		"it goes on to twice as many":                               {Double, 2, 2, 2, 4},
		"what is beyond a step does not count as one":               {Double, 2, 7, 4, 8},
		"a minimum of one doubles as well":                          {Double, 1, 3, 2, 4},
		"a minimum that is no power of two is doubled":              {Double, 3, 11, 6, 12},
		"a number is added to the minimum":                          {8, 4, 12, 12, 20},
		"of what was lost the step is filled up again":              {8, 4, 11, 4, 12},
		"without a size every number of members will do":            {0, 4, 5, 5, 6},
		"without a size the minimum is what a gang has to begin on": {0, 4, 1, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, follows := tc.size.Reached(tc.minimum, tc.have), tc.size.Next(tc.minimum, tc.have)
			if at != tc.wantAt || follows != tc.wantFollows {
				t.Errorf("%d members of a minimum of %d by %s: step %d, then %d; want %d, then %d", tc.have, tc.minimum,
					tc.size, at, follows, tc.wantAt, tc.wantFollows)
			}
		})
	}
}

// onLadder says of a number of members, the slow way, whether a gang may run with it.
func onLadder(s Size, minimum, n int) bool {
	for at := minimum; at <= n; {
		switch {
		case at == n:
			return true
		case s == Double:
			at += at
		default:
			at += max(int(s), 1)
		}
	}
	return false
}

func TestStepsAreThoseOfTheLadder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.Just(Double), rapid.Map(rapid.IntRange(2, 40), func(n int) Size { return Size(n) }),
			rapid.Just(Size(0))).Draw(t, "size")
		minimum, have := rapid.IntRange(1, 50).Draw(t, "minimum"), rapid.IntRange(0, 500).Draw(t, "have")
		at, next := s.Reached(minimum, have), s.Next(minimum, have)
		switch {
		case next <= have || at > have:
			t.Fatalf("%d members are at %d and go on to %d", have, at, next)
		case !onLadder(s, minimum, next):
			t.Fatalf("%d is no step", next)
		case have < minimum && (at != have || next != minimum):
			t.Fatalf("before the minimum of %d, %d members are at %d and go on to %d", minimum, have, at, next)
		case have >= minimum && !onLadder(s, minimum, at):
			t.Fatalf("%d is no step", at)
		}
		for n := at + 1; n < next; n++ {
			if have >= minimum && onLadder(s, minimum, n) {
				t.Fatalf("between %d and %d there is %d", at, next, n)
			}
		}
		// Every step serves as the minimum of those that follow.
		if more := have + rapid.IntRange(0, 500).Draw(t, "more"); more >= next && s.Reached(next, more) != s.Reached(minimum,
			more) {
			t.Fatalf("from %d on %d members are at %d, from %d on at %d", next, more, s.Reached(next, more), minimum,
				s.Reached(minimum, more))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"double", "Double", "2", "1", "0", "-8", "+8", "008", "100000", "100001", "8.0", "",
		" 8", "1e3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := Parse(text)
		if !ok {
			return
		}
		if s != Double && (s < 2 || s > Largest) {
			t.Fatalf("%q is read as %d", text, s)
		}
		if again, ok := Parse(s.String()); !ok || again != s {
			t.Fatalf("%q is read as %s, which is read as %s", text, s, again)
		}
		for have := range 50 {
			if next := s.Next(4, have); next <= have {
				t.Fatalf("by %s, %d members go on to %d", s, have, next)
			}
		}
	})
}
