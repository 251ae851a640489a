package gang

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLess(t *testing.T) {
	t.Parallel()
	// The first to be scheduled first.
	want := []Key{
		{Committing: true, Priority: -1, Time: t0.Add(time.Hour), Tie: "z"},
		{Priority: 5, Time: t0.Add(time.Hour), Tie: "z"},
		{Priority: 4, Degraded: true, Time: t0.Add(time.Hour), Tie: "z"},
		{Priority: 4, Time: t0, Tie: "b"},
		{Priority: 4, Time: t0.Add(time.Second), Tie: "a"},
		{Priority: 4, Time: t0.Add(time.Second), Tie: "b"},
		{Priority: 4, Time: t0, Precedence: Precedence{Wait: time.Minute}},
		{Priority: -9, Time: t0},
		{Priority: 1, Time: t0.Add(-time.Hour), Precedence: Precedence{Ages: true, Wait: time.Hour}},
		{Priority: 2, Time: t0, Precedence: Precedence{Ages: true}},
		{Priority: 9, Degraded: true, Time: t0, Precedence: Precedence{Ages: true, Wait: time.Minute}},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b Key) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// The queue is a heap, which needs a strict order.
func TestLessIsAStrictOrder(t *testing.T) {
	t.Parallel()
	key := rapid.Custom(func(t *rapid.T) Key {
		return Key{
			Committing: rapid.Bool().Draw(t, "committing"), Priority: int32(rapid.IntRange(0, 1).Draw(t, "priority")),
			Degraded: rapid.Bool().Draw(t, "degraded"), Time: t0.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "time"))),
			Tie: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tie"),
			Precedence: Precedence{Ages: rapid.Bool().Draw(t, "ages"),
				Wait: time.Duration(rapid.IntRange(0, 1).Draw(t, "wait"))},
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := key.Draw(t, "a"), key.Draw(t, "b"), key.Draw(t, "c")
		switch {
		case a.Less(a):
			t.Fatal("a key comes before itself")
		case !a.Ages && a != b && a.Less(b) == b.Less(a):
			t.Fatal("two keys have no order")
		case a.Less(b) && !a.Less(c) && !c.Less(a) && !c.Less(b):
			t.Fatal("keys that are as good as each other come at different places")
		case a.Less(b) && b.Less(c) && !a.Less(c):
			t.Fatal("the order goes round in a circle")
		}
	})
}
