package gang

import (
	"testing"
	"time"
)

func TestATurnLastsWhilePodsEnd(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	a := ID{"ns", "a"}
	turns := NewReserveTurns(time.Hour)
	turns.Begin(a, 10, start)
	now := start
	for pods := 9; pods > 0; pods-- {
		now = now.Add(59 * time.Minute)
		if !turns.Continue(pods, now) {
			t.Fatalf("the turn ended although only %d pods have to end", pods)
		}
	}
	if !turns.Continue(1, now.Add(59*time.Minute)) {
		t.Error("the turn ended before its time")
	}
	if turns.Continue(1, now.Add(time.Hour)) {
		t.Error("the turn goes on without progress")
	}
	if id, _ := turns.Current(); id != (ID{}) {
		t.Errorf("the turn is still that of %s", id)
	}
}

func TestRestsGrowAfterTurnsInVain(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	a, b := ID{"ns", "a"}, ID{"ns", "b"}
	turns := NewReserveTurns(time.Hour)
	for i, hours := range []int{1, 2, 4, 8, 16, 24, 24} {
		want := time.Duration(hours) * time.Hour
		if !turns.MayBegin(a, now) {
			t.Fatalf("turn %d: it still rests", i)
		}
		turns.Begin(a, 3, now)
		now = now.Add(time.Hour)
		if turns.Continue(3, now) {
			t.Fatalf("turn %d goes on without progress", i)
		}
		if turns.MayBegin(a, now.Add(want-1)) {
			t.Errorf("after turn %d it does not rest for %s", i, want)
		}
		if !turns.MayBegin(b, now) {
			t.Errorf("after turn %d of %s, %s may not begin", i, a, b)
		}
		now = now.Add(want)
	}
	turns.Begin(a, 3, now)
	turns.Forget(a, false, now)
	if !turns.MayBegin(a, now) {
		t.Error("a group that was forgotten rests")
	}
	if id, _ := turns.Current(); id != (ID{}) {
		t.Errorf("the turn is still that of %s", id)
	}
}

func TestAGroupThatIsSkippedRestsForAMinute(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	a := ID{"ns", "a"}
	turns := NewReserveTurns(time.Hour)
	turns.Skip(a, now)
	if turns.MayBegin(a, now.Add(59*time.Second)) || !turns.MayBegin(a, now.Add(time.Minute)) {
		t.Error("want a rest of one minute")
	}
}

func TestANewNameGetsNoNewTurn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                 string
		harm, started, rests bool
	}{
		{name: "what was kept from others in vain counts for the namespace", harm: true, rests: true},
		{name: "what nobody else wanted does not"},
		{name: "a group that starts in its turn has used it well", harm: true, started: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(0, 0)
			turns := NewReserveTurns(time.Hour)
			// The group is deleted and created again under another name every ten minutes.
			for i := range 6 {
				id := ID{"ns", string(rune('a' + i))}
				if !turns.MayBegin(id, now) {
					t.Fatalf("%s may not begin after %s", id, now.Sub(time.Unix(0, 0)))
				}
				turns.Begin(id, 3, now)
				if tc.harm {
					turns.Harm()
				}
				now = now.Add(10 * time.Minute)
				turns.Forget(id, tc.started, now)
			}
			if rests := !turns.MayBegin(ID{"ns", "new"}, now.Add(time.Hour-1)); rests != tc.rests {
				t.Errorf("the namespace rests: %t, want %t", rests, tc.rests)
			}
			if !turns.MayBegin(ID{"ns", "new"}, now.Add(time.Hour)) {
				t.Error("the namespace rests for longer than a turn")
			}
			if !turns.MayBegin(ID{"other", "a"}, now) {
				t.Error("another namespace rests, too")
			}
		})
	}
}
