package gang

import (
	"testing"
	"time"
)

func TestWhatAnEvictionMayTake(t *testing.T) {
	t.Parallel()
	whole := func(bound int) EvictionImpact {
		return EvictionImpact{Group: g1, Whole: true, Bound: bound}
	}
	some := func(members ...int) EvictionImpact {
		t := EvictionImpact{Group: g1, Bound: 3}
		for _, i := range members {
			t.Pods = append(t.Pods, uid(i))
		}
		return t
	}
	for _, tc := range []struct {
		name   string
		ledger *Ledger
		impact EvictionImpact
		want   bool
	}{
		{"all but one that was bound since", runningGangOf(3, 3), whole(2), false},
		{"all but those that have been on their way for too long", func() *Ledger {
			l := NewLedger(time.Minute, nil)
			l.Define(g1, Object, minimumOf(2), t0)
			for i := range 2 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
			l.Observe(g1, pending(2), t0)
			l.Cycles.Admit(uid(2))
			l.Cycles.Of(uid(2))
			l.Cycles.Reserve(uid(2), "n", t0.Add(-longestFlight))
			return l
		}(), whole(2), true},
		{"what is beyond the minimum, of which another should have gone", func() *Ledger {
			l := runningGangOf(3, 2)
			l.Evictions.EvictMember(uid(0), t0, t0.Add(-time.Second))
			return l
		}(), some(1), true},
		{"what was beyond the minimum, of which one has gone since", func() *Ledger {
			l := runningGangOf(3, 2)
			l.Forget(uid(0), t0)
			return l
		}(), some(1), false},
		{"pods of a group without a specification", func() *Ledger {
			l := runningGangOf(3, 3)
			l.Undefine(g1, Object, t0)
			return l
		}(), some(1), true},
		{"pods of a group that is not known", NewLedger(time.Minute, nil), whole(3), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			other := EvictionImpact{Group: g2, Whole: true, Bound: 1}
			tc.ledger.Observe(g2, bound(9, node(9)), t0)
			if got := tc.ledger.Evictions.Evict([]EvictionImpact{other, tc.impact}, t0.Add(time.Second), t0); got != tc.want {
				t.Fatalf("may be taken: %t, want %t", got, tc.want)
			}
			if waits := tc.ledger.groups[g2].eviction.evicting(); waits != tc.want {
				t.Errorf("another group of the same eviction waits: %t, want %t", waits, tc.want)
			}
		})
	}
}

func TestMembersWaitWhileTheirGangIsEvicted(t *testing.T) {
	t.Parallel()
	until := t0.Add(30 * time.Second)
	running := func() *Ledger {
		l := runningGangOf(2, 2)
		l.Observe(g1, pending(2), t0)
		l.Evictions.Evict([]EvictionImpact{{Group: g1, Whole: true, Bound: 2}}, until, t0)
		return l
	}
	gone := func(l *Ledger, members ...int) {
		for _, i := range members {
			l.Observe(g1, inState(i, Terminating), t0)
		}
	}
	for _, tc := range []struct {
		name string
		do   func(l *Ledger) Effects
		kind Purpose
		why  string
		wake int
	}{
		{"when they have gone and another has come", func(l *Ledger) Effects {
			gone(l, 0, 1)
			l.Observe(g1, pending(3), t0)
			return l.Agenda.Invite(g1, t0)
		}, Lead, "", 1},
		{"when one has not gone in time", func(l *Ledger) Effects {
			l.Observe(g1, inState(0, Terminating), t0)
			return l.Agenda.Expire(testBackoff, until)
		}, Alone, "", 1},
		{"a moment before that", func(l *Ledger) Effects {
			l.Observe(g1, inState(0, Terminating), t0)
			return l.Agenda.Expire(testBackoff, until.Add(-1))
		}, Wait, "gang ns/one is being evicted", 0},
	} {
		l := running()
		l.Cycles.Admit(uid(2))
		if e := tc.do(l); len(e.Activate) != tc.wake {
			t.Errorf("%s: %d members are woken, want %d", tc.name, len(e.Activate), tc.wake)
		}
		l.Cycles.Admit(uid(2))
		if cycle := l.Cycles.Of(uid(2)); cycle.Purpose != tc.kind || words(cycle.Why) != tc.why {
			t.Errorf("%s: purpose %d, %q; want %d, %q", tc.name, cycle.Purpose, words(cycle.Why), tc.kind, tc.why)
		}
	}
}
