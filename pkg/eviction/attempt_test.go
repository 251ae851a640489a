package eviction

import (
	"testing"
	"time"
)

func TestAttempt(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	searched := func(a *Attempt) { a.Searching(); a.Planned(t0) }
	evicted := func(a *Attempt) { a.Evicting(); a.Awaiting(at(10 * time.Second)) }
	late := func(a *Attempt) { evicted(a); a.Ask(1, at(40*time.Second)) }
	for _, tc := range []struct {
		name    string
		happens func(a *Attempt)
		left    int
		after   time.Duration
		// ask is what to do when the gang does not fit, review what to do as time passes.
		ask, review Step
	}{
		{"a new one searches", func(*Attempt) {}, 0, 0, Search, Wait},
		{"one that is not asked for long ends", func(*Attempt) {}, 0, patience + 1, Search, GiveUp},
		{"one search at a time", func(a *Attempt) { a.Searching() }, 0, time.Second, WaitForSearch, Wait},
		{"a plan is used when the gang has its turn", searched, 0, 20 * time.Second, UsePlan, Wait},
		{"a plan that is too old is not used", searched, 0, planAge, Search, Wait},
		{"a plan is used once", func(a *Attempt) { searched(a); a.Taken() }, 0, time.Second, Search, Wait},
		{"pods are awaited while they are evicted, however long that takes",
			func(a *Attempt) { a.Evicting() }, 2, time.Hour, Wait, Wait},
		{"pods are awaited while they terminate", evicted, 2, 40*time.Second - 1, Wait, Wait},
		{"when all have gone, all begins again", evicted, 0, 40 * time.Second, Restart, Wait},
		{"others are chosen in place of pods that are late", evicted, 1, 40 * time.Second, ChooseOthers, ChooseOthers},
		{"once others may be chosen, victims are searched for", late, 1, 41 * time.Second, Search, Wait},
		{"it lasts as long as pods are late", late, 1, time.Hour, Search, Wait},
		{"it ends some time after the late ones have gone", late, 0, 41*time.Second + patience, Search, GiveUp},
		{"when nothing else helps while pods are late, it begins again",
			func(a *Attempt) { late(a); searched(a); a.GivenUp() }, 1, 41 * time.Second, Search, Wait},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := NewAttempt(t0)
			tc.happens(&a)
			b := a
			if got := a.Ask(tc.left, at(tc.after)); got != tc.ask {
				t.Errorf("asked, it answers %d, want %d", got, tc.ask)
			}
			if got := b.Review(tc.left, at(tc.after)); got != tc.review {
				t.Errorf("reviewed, it answers %d, want %d", got, tc.review)
			}
		})
	}
}

func TestAPlanIsLookedForAgainAFewTimes(t *testing.T) {
	t.Parallel()
	a := NewAttempt(t0)
	for i, want := range []struct {
		outdated bool
		pause    time.Duration
		again    bool
	}{{false, 0, true}, {true, 2 * OutdatedPause, true}, {true, 4 * OutdatedPause, true}, {false, 0, false}} {
		if pause, again := a.Rejected(want.outdated); pause != want.pause || again != want.again {
			t.Errorf("rejection %d: %s, %t; want %s, %t", i, pause, again, want.pause, want.again)
		}
	}
}
