package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrderedPlan(t *testing.T) {
	t.Parallel()
	l := gangOf(4, 4)
	l.Agenda.Invite(g1, t0)
	// The leader is the third in the order, and the first member writes what the others share.
	p := proposalFor(1, 2, 0, 3)
	p.Ordered, p.Assignments[0].First = true, true
	e, serves, proceed := l.Cycles.Propose(uid(0), p, t0)
	if !serves || proceed {
		t.Fatalf("the plan serves %t, its leader goes on %t; want it to wait for its turn", serves, proceed)
	}
	activated := func(when string, e Effects, want ...UID) {
		t.Helper()
		if diff := cmp.Diff(want, uids(e.Activate)); diff != "" {
			t.Fatalf("activated %s (-want +got):\n%s", when, diff)
		}
	}
	activated("at first", e, uid(1))
	e = reserve(t, l, 1)
	activated("while the first prepares", e)
	if cycle := l.Cycles.Of(uid(2)); cycle.Purpose != Wait {
		t.Fatalf("cycle of the second while the first prepares: %+v", cycle)
	}
	if s := l.Cycles.Standing(uid(1)); !s.Holds || s.Allowed {
		t.Fatalf("the first holds its assignment %t and was let go %t", s.Holds, s.Allowed)
	}
	e, wait, ok := l.Cycles.Prepared(uid(1), t0.Add(10*time.Second))
	if !ok || wait != 50*time.Second {
		t.Fatalf("the first waits %s for its siblings, ok %t", wait, ok)
	}
	activated("when the first is prepared", e, uid(2))
	activated("when the second has reserved", reserve(t, l, 2), uid(0))
	activated("when the third has reserved", reserve(t, l, 0), uid(3))
	e = reserve(t, l, 3)
	if diff := cmp.Diff([]UID{uid(1), uid(2), uid(0)}, uids(e.Allow)); diff != "" {
		t.Errorf("all go together (-want +got):\n%s", diff)
	}
}
