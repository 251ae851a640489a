package reserve

import (
	"testing"
	"time"

	"berth.dev/berth/pkg/gang"
)

func TestATurnLastsWhilePodsEnd(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	a := gang.ID{Namespace: "ns", Name: "a"}
	turns := NewTurns(time.Hour)
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
	if id, _ := turns.Current(); id != (gang.ID{}) {
		t.Errorf("the turn is still that of %s", id)
	}
}

func TestRestsGrowAfterTurnsInVain(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	a, b := gang.ID{Namespace: "ns", Name: "a"}, gang.ID{Namespace: "ns", Name: "b"}
	turns := NewTurns(time.Hour)
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
	if id, _ := turns.Current(); id != (gang.ID{}) {
		t.Errorf("the turn is still that of %s", id)
	}
}

func TestAGroupThatIsSkippedRestsForAMinute(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	a := gang.ID{Namespace: "ns", Name: "a"}
	turns := NewTurns(time.Hour)
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
			turns := NewTurns(time.Hour)
			// The group is deleted and created again under another name every ten minutes.
			for i := range 6 {
				id := gang.ID{Namespace: "ns", Name: string(rune('a' + i))}
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
			if rests := !turns.MayBegin(gang.ID{Namespace: "ns", Name: "new"}, now.Add(time.Hour-1)); rests != tc.rests {
				t.Errorf("the namespace rests: %t, want %t", rests, tc.rests)
			}
			if !turns.MayBegin(gang.ID{Namespace: "ns", Name: "new"}, now.Add(time.Hour)) {
				t.Error("the namespace rests for longer than a turn")
			}
			if !turns.MayBegin(gang.ID{Namespace: "other", Name: "a"}, now) {
				t.Error("another namespace rests, too")
			}
		})
	}
}

func TestAStartMakesUpForAsMuchAsWasKeptForIt(t *testing.T) {
	t.Parallel()
	begin := time.Unix(0, 0)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	for _, tc := range []struct {
		name string
		// credits are from and to when nodes were kept for a group that started after the charge.
		credits [][2]int
		// charged is for how many minutes others were kept off then, rests whether the namespace rests at the end.
		first, charged int
		rests          bool
	}{
		{name: "two halves of a turn are a turn", first: 30, charged: 30, rests: true},
		{name: "a short one hardly counts", first: 50, credits: [][2]int{{49, 51}}, charged: 15, rests: true},
		{name: "one of the same length makes up for it", first: 30, credits: [][2]int{{30, 60}}, charged: 30},
		{name: "one at the same time does not", first: 30, credits: [][2]int{{0, 30}}, charged: 30, rests: true},
		{name: "it does not end a rest", first: 60, credits: [][2]int{{0, 61}}, rests: true},
		{name: "nor does it shorten the next one right after", first: 60, credits: [][2]int{{0, 121}}, charged: 60,
			rests: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			turns := NewTurns(time.Hour)
			now := at(tc.first)
			turns.Charge("ns", begin, now)
			for _, c := range tc.credits {
				now = at(c[1])
				turns.Credit("ns", at(c[0]), now)
			}
			if tc.charged > 0 {
				before := now
				now = now.Add(time.Duration(tc.charged) * time.Minute)
				turns.Charge("ns", before, now)
			}
			if rests := !turns.MayBegin(gang.ID{Namespace: "ns", Name: "g"}, now.Add(58*time.Minute)); rests != tc.rests {
				t.Errorf("the namespace rests: %t, want %t", rests, tc.rests)
			}
			if tc.first == 60 && tc.charged == 60 && turns.MayBegin(gang.ID{Namespace: "ns", Name: "g"},
				now.Add(2*time.Hour-1)) {
				t.Error("the second rest is not twice as long")
			}
		})
	}
	turns := NewTurns(time.Hour)
	turns.Charge("ns", begin, at(20))
	if turns.Spent("ns", at(30), at(69)) || !turns.Spent("ns", at(30), at(70)) {
		t.Error("after 20 minutes, 40 are left")
	}
	turns = NewTurns(time.Hour)
	turns.Charge("ns", begin, at(60))
	turns.Credit("ns", at(200), at(240))
	turns.Charge("ns", at(240), at(300))
	if !turns.MayBegin(gang.ID{Namespace: "ns", Name: "g"}, at(360)) {
		t.Error("a namespace that did without a rest for long is not forgiven")
	}
}
