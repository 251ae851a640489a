package gang

import (
	"testing"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
)

// A group whose start was cut short comes before what is more important, once.
func TestAStartThatWasCutShortComesFirst(t *testing.T) {
	t.Parallel()
	important := Key{Priority: 1000, Time: t0.Add(-time.Hour), Tie: "x"}
	restarted := func(bound, minimum int) *Ledger {
		l := runningGangOf(bound, minimum)
		for i := bound; i < 3; i++ {
			l.Observe(g1, pending(i), t0)
		}
		l.Agenda.TakeOver()
		l.Agenda.Invite(g1, t0)
		return l
	}
	again := func(l *Ledger, now time.Time) *Ledger {
		l.Cycles.Admit(uid(2))
		l.Cycles.Of(uid(2))
		l.Cycles.Block(g1, obstacle.Text("no room"), nil, testBackoff, now)
		l.Agenda.Invite(g1, now)
		return l
	}
	lost := func(bound ...int) *Ledger {
		l := releasedGangOf(t, 3, 3)
		for _, i := range bound {
			l.Observe(g1, inState(i, Bound), t0)
		}
		for i := 2; i >= len(bound); i-- {
			l.Cycles.Unreserve(uid(i), testBackoff, t0)
		}
		l.Agenda.Invite(g1, t0)
		return l
	}
	for _, tc := range []struct {
		name   string
		ledger *Ledger
		first  bool
	}{
		{"two of three are bound when a scheduler takes over", restarted(2, 3), true},
		{"it was tried since, and does not fit", again(restarted(2, 3), t0), false},
		{"one member could not be bound", lost(0, 1), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			leader := UID("")
			for i := range 3 {
				if ok, _ := tc.ledger.Cycles.Admit(uid(i)); ok {
					leader = uid(i)
				}
			}
			key, ok := tc.ledger.Cycles.Key(leader)
			if !ok {
				t.Fatal("no member is let into the queue")
			}
			if first := key.Less(important); first != tc.first {
				t.Errorf("comes before a more important pod: %t, want %t", first, tc.first)
			}
		})
	}
}
