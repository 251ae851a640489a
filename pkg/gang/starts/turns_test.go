package starts

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
)

var group = gang.ID{Namespace: "ns", Name: "a"}

// ends is a choice for which a number of pods have to end.
func ends(pods int) *Choice { return &Choice{Pods: pods} }

// starts is a choice with a start.
func starts(at time.Time) *Choice { return &Choice{Pods: 1, Start: at} }

func TestRestsGrowAfterTurnsInVain(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	other := gang.ID{Namespace: "ns", Name: "b"}
	turns := NewTurns(time.Hour)
	for i, hours := range []int{1, 2, 4, 8, 16, 24, 24} {
		want := time.Duration(hours) * time.Hour
		if !turns.MayBegin(group, now) {
			t.Fatalf("turn %d: it still rests", i)
		}
		turns.Begin(group, ends(3), time.Time{}, now)
		now = now.Add(time.Hour)
		if turns.Continue(ends(3), now) {
			t.Fatalf("turn %d goes on without progress", i)
		}
		if id, _ := turns.Current(); id != (gang.ID{}) {
			t.Fatalf("turn %d is still that of %s", i, id)
		}
		if turns.MayBegin(group, now.Add(want-1)) {
			t.Errorf("after turn %d it does not rest for %s", i, want)
		}
		if !turns.MayBegin(other, now) {
			t.Errorf("after turn %d of %s, %s may not begin", i, group, other)
		}
		now = now.Add(want)
	}
	turns.Begin(group, ends(3), time.Time{}, now)
	turns.Forget(group)
	if !turns.MayBegin(group, now) {
		t.Error("a group that was forgotten rests")
	}
	if id, _ := turns.Current(); id != (gang.ID{}) {
		t.Errorf("the turn is still that of %s", id)
	}
}

func TestAGroupThatIsSkippedRestsForAMinute(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	turns := NewTurns(time.Hour)
	turns.Skip(group, now)
	if turns.MayBegin(group, now.Add(59*time.Second)) || !turns.MayBegin(group, now.Add(time.Minute)) {
		t.Error("want a rest of one minute")
	}
}

func TestATurnWithAStartLastsUntilThen(t *testing.T) {
	t.Parallel()
	begin := time.Unix(0, 0)
	at := func(hours int) time.Time { return begin.Add(time.Duration(hours) * time.Hour) }
	turns := NewTurns(time.Hour)
	turns.Begin(group, starts(at(10)), time.Time{}, begin)
	if !turns.Continue(starts(at(10)), at(9)) || turns.Missed(at(10)) {
		t.Error("it ends before the start")
	}
	if !turns.Continue(starts(at(8)), at(7)) || !turns.Continue(starts(at(20)), at(8)) {
		t.Error("it ends before a start that came nearer")
	}
	if !turns.Missed(at(8).Add(late + 1)) {
		t.Error("a start that is put off is not missed")
	}
	if !turns.Continue(ends(1), at(9).Add(-1)) {
		t.Error("it ends at once when the start is over")
	}
	if turns.Continue(starts(at(20)), at(9)) {
		t.Error("a start that is put off again keeps the turn")
	}
}

// Whatever is found at each look, and was told before, a turn ends when its time has passed since the soonest start
// that was known, or since a pod has ended.
func TestNoTurnOutlastsItsTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Minute
		}
		now := time.Unix(0, 0)
		patience := time.Minute + minutes("patience", 60)
		turns := NewTurns(patience)
		draw := func() *Choice {
			c := ends(rapid.IntRange(0, 5).Draw(t, "pods"))
			if rapid.Bool().Draw(t, "known") {
				c.Start = now.Add(minutes("start", 120))
			}
			return c
		}
		c, told := draw(), draw().Start
		turns.Begin(group, c, told, now)
		last, fewest, soonest := now, c.Pods, c.Start
		if soonest.IsZero() || !told.IsZero() && told.Before(soonest) {
			soonest = told
		}
		if !soonest.IsZero() {
			last = soonest
		}
		for range 50 {
			now = now.Add(minutes("passes", 30))
			c = draw()
			if c.Pods < fewest {
				if fewest = c.Pods; now.After(last) {
					last = now
				}
			}
			if !c.Start.IsZero() && (soonest.IsZero() || c.Start.Before(soonest)) {
				soonest, last = c.Start, c.Start
			}
			if goesOn := turns.Continue(c, now); goesOn != now.Before(last.Add(patience)) {
				t.Fatalf("it goes on: %v, %s after the last progress", goesOn, now.Sub(last))
			} else if !goesOn {
				return
			}
		}
	})
}
