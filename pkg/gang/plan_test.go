package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang/obstacle"
)

func TestProposalThatDoesNotServe(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		leader   int
		proposal Proposal
		do       func(l *Ledger)
	}{
		{"because it gives too few members a node", 0, proposalFor(0, 1), func(*Ledger) {}},
		{"because a member has gone meanwhile", 0, proposalFor(0, 1, 2), func(l *Ledger) { l.Forget(uid(2), t0) }},
		{"because another scheduler has placed a member meanwhile and that one is gone", 0, proposalFor(0, 1, 2),
			func(l *Ledger) {
				l.Observe(g1, bound(2, "x"), t0)
				l.Observe(g1, inState(2, Failed), t0)
			}},
		{"because the PodGroup has gone meanwhile", 0, proposalFor(0, 1, 2), func(l *Ledger) { l.Undefine(g1, Object, t0) }},
		{"because a member plans that does not lead", 1, proposalFor(0, 1, 2), func(*Ledger) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := gangOf(3, 3)
			l.Agenda.Invite(g1, t0)
			l.Cycles.Turn(uid(tc.leader))
			tc.do(l)
			if _, serves, proceed := l.Cycles.Propose(uid(tc.leader), tc.proposal, t0); serves || proceed {
				t.Errorf("serves %t, proceed %t; want neither", serves, proceed)
			}
			if v, _ := l.View(g1); v.Holding != 0 {
				t.Errorf("%d assignments are held", v.Holding)
			}
		})
	}
}

// The oldest member fits nowhere: it plans for the others all the same, and waits.
func TestLeaderWithoutANodeLetsTheOthersStart(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 2)
	l.Agenda.Invite(g1, t0)
	if turn := l.Cycles.Turn(uid(0)); turn.Kind != Lead || turn.Need.Total != 2 || len(turn.Members) != 3 {
		t.Fatalf("turn %+v; want to lead three members of which two are needed", turn)
	}
	e, serves, proceed := l.Cycles.Propose(uid(0), proposalFor(1, 2), t0)
	if !serves || proceed {
		t.Fatalf("the plan serves %t, its leader goes on %t; want it to serve without the leader", serves, proceed)
	}
	if diff := cmp.Diff([]UID{uid(1), uid(2)}, uids(e.Activate)); diff != "" {
		t.Fatalf("activated (-want +got):\n%s", diff)
	}
	reserve(t, l, 1, 2)
	l.Observe(g1, bound(1, node(1)), t0)
	e = l.Observe(g1, bound(2, node(2)), t0)
	if !e.Started {
		t.Error("the gang has its minimum and has not started")
	}
	if diff := cmp.Diff([]UID{uid(0)}, uids(e.Activate)); diff != "" {
		t.Fatalf("the leader is an ordinary pod then (-want +got):\n%s", diff)
	}
}

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
	if turn := l.Cycles.Turn(uid(2)); turn.Kind != Hold {
		t.Fatalf("turn of the second while the first prepares: %+v", turn)
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

func TestMemberThatPreparesAlone(t *testing.T) {
	t.Parallel()
	l := gangOf(1, 1)
	l.Agenda.Invite(g1, t0)
	p := proposalFor(0)
	p.Ordered, p.Assignments[0].First = true, true
	if _, _, proceed := l.Cycles.Propose(uid(0), p, t0); !proceed {
		t.Fatal("the first in the order cannot go on")
	}
	reserve(t, l, 0)
	if _, wait, ok := l.Cycles.Prepared(uid(0), t0); !ok || wait != 0 {
		t.Errorf("a gang of one waits %s for siblings, ok %t", wait, ok)
	}
}

// A plan that is lost while a member prepares is told to that member when it is done, or before.
func TestPlanIsLostWhileAMemberPrepares(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	l.Agenda.Invite(g1, t0)
	p := proposalFor(0, 1)
	p.Ordered, p.Assignments[0].First = true, true
	l.Cycles.Propose(uid(0), p, t0)
	reserve(t, l, 0)
	who, _ := rejected(l.Forget(uid(1), t0))
	if diff := cmp.Diff([]UID{uid(0)}, who); diff != "" {
		t.Fatalf("rejected (-want +got):\n%s", diff)
	}
	if _, _, ok := l.Cycles.Prepared(uid(0), t0); ok {
		t.Fatal("the member goes on without a plan")
	}
	l.Cycles.Unreserve(uid(0), testBackoff, t0)
	if v, _ := l.View(g1); v.Holding != 0 {
		t.Errorf("%d assignments are held", v.Holding)
	}
}

// A surplus member that prepares is let go with the others. It is not told, because it does not wait yet.
func TestGangGoesWithoutASurplusMemberThatPrepares(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 2)
	l.Agenda.Invite(g1, t0)
	p := proposalFor(0, 1, 2)
	p.Assignments[0].First = true
	l.Cycles.Propose(uid(0), p, t0)
	reserve(t, l, 0, 1, 2)
	e := l.Agenda.Expire(testBackoff, t0.Add(stragglersGrace))
	if diff := cmp.Diff([]UID{uid(1), uid(2)}, uids(e.Allow)); diff != "" {
		t.Errorf("let go (-want +got):\n%s", diff)
	}
	if _, wait, ok := l.Cycles.Prepared(uid(0), t0); !ok || wait != 0 {
		t.Errorf("the member that prepared waits %s, ok %t", wait, ok)
	}
}

func TestProposalForMembersThatNeedNoNodeAnyMore(t *testing.T) {
	t.Parallel()
	l := gangOf(5, 3)
	l.Agenda.Invite(g1, t0)
	l.Cycles.Turn(uid(0))
	l.Observe(g1, inState(3, Terminating), t0)
	l.Forget(uid(4), t0)
	if _, serves, proceed := l.Cycles.Propose(uid(0), proposalFor(0, 1, 2, 3, 4), t0); !serves || !proceed {
		t.Fatalf("the plan serves %t, its leader goes on %t", serves, proceed)
	}
	if diff := cmp.Diff([]UID{uid(0), uid(1)}, uids(reserve(t, l, 0, 1, 2).Allow)); diff != "" {
		t.Errorf("let go (-want +got):\n%s", diff)
	}
}

func TestOrderedPlanGoesOnWithoutASurplusMember(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 2)
	l.Agenda.Invite(g1, t0)
	p := proposalFor(0, 1, 2)
	p.Ordered = true
	l.Cycles.Propose(uid(0), p, t0)
	reserve(t, l, 0)
	e := l.Cycles.Broken(uid(1), obstacle.Told("node is gone"), testBackoff, t0)
	if diff := cmp.Diff([]UID{uid(2)}, uids(e.Activate)); diff != "" {
		t.Fatalf("the turn passes on (-want +got):\n%s", diff)
	}
}
