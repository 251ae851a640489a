package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsKnownOfAStart(t *testing.T) {
	t.Parallel()
	// Each case leaves member 9 pending, and perhaps others.
	for _, tc := range []struct {
		name    string
		do      func(l *Ledger)
		started bool
		kind    Purpose
		why     string
	}{
		{"a scheduler that starts is told before it sees the group", func(l *Ledger) {
			l.Forget(uid(9), t0)
			l.Undefine(g1, Object, t0)
			if _, known := l.View(g1); known {
				t.Error("the group is known before anything is")
			}
			l.Recall(g1, HadStarted, t0)
			if _, known := l.View(g1); known {
				t.Error("a group of which only its start is remembered is shown")
			}
			l.Observe(g1, bound(0, node(0)), t0)
			l.Define(g1, Object, minimumOf(4), t0)
			l.Observe(g1, pending(9), t0)
		}, true, Alone, ""},
		{"only the first word counts", func(l *Ledger) {
			l.Recall(g1, NotStarted, t0)
			l.Recall(g1, HadStarted, t0)
			l.Observe(g1, bound(0, node(0)), t0)
		}, false, Wait, "gang ns/one has 2 of the 4 members that it needs"},
		{"nothing is left of a gang that had started", func(l *Ledger) {
			l.Recall(g1, HadStarted, t0)
		}, false, Wait, "gang ns/one has 1 of the 4 members that it needs"},
		{"as many as the minimum have succeeded", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
				l.Observe(g1, inState(i, Succeeded), t0)
			}
		}, true, Alone, ""},
		{"a lowered minimum is a start", func(l *Ledger) {
			l.Observe(g1, bound(0, node(0)), t0)
			l.Define(g1, Object, minimumOf(1), t0)
		}, true, Alone, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := gangOf(0, 4)
			l.Observe(g1, pending(9), t0)
			tc.do(l)
			l.Agenda.Invite(g1, t0)
			cycle := l.Cycles.Of(uid(9))
			v, _ := l.View(g1)
			if v.Started != tc.started || cycle.Purpose != tc.kind || words(cycle.Why) != tc.why {
				t.Errorf("started %t, purpose %v %q; want %t, %v %q", v.Started, cycle.Purpose, cycle.Why, tc.started, tc.kind,
					tc.why)
			}
		})
	}
}

// A start is said again when a PodGroup is used again, and the wait counts from the new members.
func TestSecondStart(t *testing.T) {
	t.Parallel()
	l := runningGangOf(2, 2)
	for i := range 2 {
		l.Observe(g1, inState(i, Succeeded), t0)
		l.Forget(uid(i), t0)
	}
	later := t0.Add(time.Hour)
	l.Observe(g1, pending(2), later)
	l.Observe(g1, pending(3), later)
	l.Agenda.Invite(g1, later)
	l.Cycles.Propose(uid(2), proposalFor(2, 3), later)
	reserve(t, l, 2, 3)
	l.Observe(g1, bound(2, node(2)), later.Add(time.Second))
	if e := l.Observe(g1, bound(3, node(3)), later.Add(time.Second)); !e.Started || e.Waited != time.Second {
		t.Errorf("started %t after %s, want after 1s", e.Started, e.Waited)
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	one := []Loss{{Group: g1, Member: Ref{UID: uid(0), Namespace: "ns", Name: "p00"}, Node: node(0)}}
	starting := []Loss{{Group: g1, Member: one[0].Member, Node: node(0), Starting: true}}
	for _, tc := range []struct {
		name   string
		ledger *Ledger
		do     func(l *Ledger) Effects
		want   []Loss
	}{
		{"a member is being deleted", runningGangOf(3, 3),
			func(l *Ledger) Effects { return l.Observe(g1, inState(0, Terminating), t0) }, one},
		{"a member is gone at once", runningGangOf(3, 3), func(l *Ledger) Effects { return l.Forget(uid(0), t0) }, one},
		{"a loss is told once", runningGangOf(3, 3), func(l *Ledger) Effects {
			l.Observe(g1, inState(0, Terminating), t0)
			e := l.Observe(g1, inState(0, Failed), t0)
			e.Lost = append(e.Lost, l.Forget(uid(0), t0).Lost...)
			return e
		}, nil},
		{"a member succeeds", runningGangOf(3, 3),
			func(l *Ledger) Effects { return l.Observe(g1, inState(0, Succeeded), t0) }, nil},
		{"a member that has succeeded goes", runningGangOf(3, 3), func(l *Ledger) Effects {
			l.Observe(g1, inState(0, Succeeded), t0)
			return l.Forget(uid(0), t0)
		}, nil},
		{"the others are enough", runningGangOf(3, 2), func(l *Ledger) Effects { return l.Forget(uid(0), t0) }, nil},
		{"nothing says what the gang needs any more", runningGangOf(3, 3), func(l *Ledger) Effects {
			l.Undefine(g1, Object, t0)
			return l.Forget(uid(0), t0)
		}, nil},
		{"the gang has never started", gangOf(3, 3), func(l *Ledger) Effects {
			l.Observe(g1, bound(0, node(0)), t0)
			return l.Forget(uid(0), t0)
		}, nil},
		{"a member cannot be bound while others are being bound", releasedGangOf(t, 3, 3), func(l *Ledger) Effects {
			return l.Cycles.Unreserve(uid(0), testBackoff, t0)
		}, starting},
		{"a member moves to another gang with its node", runningGangOf(3, 3),
			func(l *Ledger) Effects { return l.Observe(g2, bound(0, node(0)), t0) }, nil},
	} {
		if diff := cmp.Diff(tc.want, tc.do(tc.ledger).Lost); diff != "" {
			t.Errorf("%s: lost (-want +got):\n%s", tc.name, diff)
		}
	}
}
