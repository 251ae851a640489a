package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang/obstacle"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	l := gangOf(0, 6)
	roles := Minimum{Total: 6, Roles: map[string]int{"leader": 1, "worker": 3}}
	l.Define(g1, Object, Spec{Minimum: roles, Created: t0, UID: "g1"}, t0)
	for i, m := range []struct {
		class, role string
		age         time.Duration
	}{{"b", "worker", 1}, {"b", "worker", 3}, {"a", "leader", 2}, {"b", "", 0}} {
		l.Observe(g1, changed(i, func(n *Member) { n.Class, n.Role, n.Created = m.class, m.role, t0.Add(-m.age) }), t0)
	}
	l.Observe(g1, changed(4, func(m *Member) { m.State, m.Role, m.Node = Bound, "worker", "n" }), t0)
	if _, waits := l.Agenda.Waiting(g1); waits {
		t.Fatal("a gang without its quorum waits to be planned")
	}
	l.Observe(g1, changed(5, func(m *Member) { m.Ours = false }), t0)
	w, waits := l.Agenda.Waiting(g1)
	if !waits {
		t.Fatal("the gang does not wait to be planned")
	}
	ref := func(i int) Ref { m := pending(i); return m.Ref }
	want := Waiting{
		ID: g1, Key: Key{Time: t0, Tie: "g1"}, Fresh: true, Since: t0, Of: roles, Held: 1,
		Need: Minimum{Total: 5, Roles: map[string]int{"leader": 1, "worker": 2}},
		Classes: []WaitingClass{
			{Class: "b", Role: "worker", Count: 2, Example: ref(1)},
			{Class: "a", Role: "leader", Count: 1, Example: ref(2)},
			{Class: "b", Role: "", Count: 1, Example: ref(3)},
		},
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("Waiting (-want +got):\n%s", diff)
	}
}

func TestBlockedGangIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	now := t0
	attempt := func(pause time.Duration) {
		t.Helper()
		if diff := cmp.Diff([]UID{uid(0)}, uids(l.Agenda.Invite(g1, now).Activate)); diff != "" {
			t.Fatalf("the leader is activated (-want +got):\n%s", diff)
		}
		l.Cycles.Admit(uid(0))
		l.Cycles.Of(uid(0))
		if l.Cycles.Standing(uid(0)).Blocked {
			t.Fatal("the gang is blocked while it is tried")
		}
		if e := l.Cycles.Block(g1, obstacle.Text("too big"), nil, testBackoff, now); !e.Empty() {
			t.Fatalf("effects %+v of a gang that holds nothing", e)
		}
		// The cycle asks again when it looks for pods to evict.
		if cycle := l.Cycles.Of(uid(0)); cycle.Purpose != Lead || !l.Cycles.Standing(uid(0)).Blocked {
			t.Fatalf("cycle %+v, blocked %t", cycle, l.Cycles.Standing(uid(0)).Blocked)
		}
		w, waits := l.Agenda.Waiting(g1)
		if !waits || w.Fresh || w.RetryAt.Sub(now) != pause {
			t.Fatalf("Waiting = %+v, %t; want a pause of %s", w, waits, pause)
		}
		if ok, why := l.Cycles.Admit(uid(0)); ok || words(why) != "too big" {
			t.Fatalf("Admit = %t, %q without an invitation", ok, why)
		}
		now = w.RetryAt
	}
	for _, pause := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		8 * time.Second} {
		attempt(pause)
	}
	// What the account of the cluster shows costs nothing, and does not end the row of failures either.
	l.Agenda.RuleOut(g1, obstacle.Text("no room"), now)
	if w, _ := l.Agenda.Waiting(g1); w.Fresh || !w.RetryAt.Equal(now) {
		t.Fatalf("Waiting = %+v after the gang was ruled out; want no pause", w)
	}
	attempt(8 * time.Second)
	// A gang that has not been tried for longer than its last pause begins with the shortest again.
	now = now.Add(8 * time.Second)
	l.Agenda.RuleOut(g1, obstacle.Text("no room"), now)
	attempt(0)
	attempt(time.Second)
	// A change of what the group asks for makes it new, but leaves the pauses as they are.
	l.Define(g1, Object, Spec{Minimum: Minimum{Total: 2}, Created: t0, UID: "g1", Placement: "rack"}, now)
	if w, _ := l.Agenda.Waiting(g1); !w.Fresh {
		t.Fatalf("Waiting = %+v after the specification changed", w)
	}
	attempt(2 * time.Second)
}

func TestRuleOut(t *testing.T) {
	t.Parallel()
	t.Run("turns back a leader that is in the queue already", func(t *testing.T) {
		t.Parallel()
		l := gangOf(2, 2)
		l.Agenda.Invite(g1, t0)
		l.Cycles.Admit(uid(0))
		l.Agenda.RuleOut(g1, obstacle.Text("no room"), t0)
		for range 2 {
			// Once in PreFilter and once in PostFilter.
			if cycle := l.Cycles.Of(uid(0)); cycle.Purpose != Wait || words(cycle.Why) != "no room" {
				t.Fatalf("cycle %+v", cycle)
			}
		}
		if diff := cmp.Diff([]UID{uid(0)}, uids(l.Agenda.Invite(g1, t0).Activate)); diff != "" {
			t.Errorf("the next invitation activates the leader (-want +got):\n%s", diff)
		}
	})
	t.Run("means nothing to a gang that is being planned", func(t *testing.T) {
		t.Parallel()
		l := plannedGangOf(t, 2, 2)
		l.Agenda.RuleOut(g1, obstacle.Text("no room"), t0)
		if v, _ := l.View(g1); v.Reason != nil {
			t.Errorf("reason %q", v.Reason)
		}
	})
	t.Run("tells of a change once", func(t *testing.T) {
		t.Parallel()
		wake := make(chan struct{}, 1)
		l := NewLedger(time.Minute, wake)
		l.Observe(g1, labelled(0, 1), t0)
		for _, news := range []bool{true, true, false, false} {
			if changed := l.Agenda.Changed()[g1]; changed != news || len(wake) > 0 != news {
				t.Fatalf("changed %t, woken %t; want %t", changed, len(wake) > 0, news)
			}
			for range len(wake) {
				<-wake
			}
			l.Agenda.RuleOut(g1, obstacle.Text("no room"), t0)
		}
	})
}

func TestMembersAreNewsToABlockedGang(t *testing.T) {
	t.Parallel()
	class := func(i int, class string) Member { return changed(i, func(m *Member) { m.Class = class }) }
	for _, tc := range []struct {
		name string
		m    Member
		news bool
	}{
		{"one more of a class that is short is none", class(9, "short"), false},
		{"one more of a class that all found a place is", class(9, "fits"), true},
		{"one that asks for something else now is", class(0, "other"), true},
		{"one that has another role now is", changed(0, func(m *Member) { m.Class, m.Role = "short", "leader" }), true},
		{"one that has a node already is", bound(9, "n"), true},
		{"one that another scheduler has placed is", changed(8, func(m *Member) { m.State, m.Node = Bound, "n" }), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := gangOf(0, 4)
			for i, c := range []string{"short", "short", "fits"} {
				l.Observe(g1, class(i, c), t0)
			}
			l.Observe(g1, changed(8, func(m *Member) { m.Ours = false }), t0)
			l.Cycles.Block(g1, obstacle.Text("too big"), []string{"short"}, testBackoff, t0)
			l.Observe(g1, tc.m, t0)
			w, waits := l.Agenda.Waiting(g1)
			if !waits || w.Fresh != tc.news {
				t.Errorf("Waiting = %+v, %t; want news %t", w, waits, tc.news)
			}
		})
	}
}

func TestLeadersThatDecline(t *testing.T) {
	t.Parallel()
	lead := func(l *Ledger, i int) {
		t.Helper()
		if ok, why := l.Cycles.Admit(uid(i)); !ok {
			t.Fatalf("member %d is held: %s", i, why)
		}
		if cycle := l.Cycles.Of(uid(i)); cycle.Purpose != Lead {
			t.Fatalf("cycle of member %d: %+v", i, cycle)
		}
	}
	t.Run("block the gang when several in a row have, and the next attempt goes on with others", func(t *testing.T) {
		t.Parallel()
		l := gangOf(6, 1)
		l.Agenda.Invite(g1, t0)
		for i := range maxDeclined {
			lead(l, i)
			l.Cycles.Decline(uid(i), obstacle.Text("no volume"), testBackoff, t0)
		}
		if v, _ := l.View(g1); words(v.Reason) != "no volume" {
			t.Errorf("reason %q", v.Reason)
		}
		l.Agenda.Invite(g1, t0)
		lead(l, maxDeclined)
	})
	t.Run("give way to another when a plan has to be completed", func(t *testing.T) {
		t.Parallel()
		l := plannedGangOf(t, 4, 3)
		l.Observe(g1, inState(3, Terminating), t0)
		reserve(t, l, 0)
		l.Cycles.Broken(uid(1), obstacle.Text("node is gone"), testBackoff, t0)
		l.Cycles.Admit(uid(2))
		if e := l.Cycles.Decline(uid(1), obstacle.Text("no volume"), testBackoff, t0); len(e.Reject) != 0 {
			t.Fatalf("%v are asked to give their assignments back", e.Reject)
		}
		lead(l, 2)
		who, _ := rejected(l.Cycles.Decline(uid(2), obstacle.Text("no volume"), testBackoff, t0))
		if diff := cmp.Diff([]UID{uid(0)}, who); diff != "" {
			t.Errorf("assignments to give back (-want +got):\n%s", diff)
		}
	})
}

func TestLeaderThatDoesNotCome(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 2)
	l.Agenda.Invite(g1, t0)
	if e := l.Agenda.Expire(testBackoff, t0.Add(patience-1)); !e.Empty() {
		t.Fatalf("effects %+v before its time is over", e)
	}
	for i := 1; i < 3; i++ {
		e := l.Agenda.Expire(testBackoff, t0.Add(time.Duration(i)*patience))
		if diff := cmp.Diff([]UID{uid(i)}, uids(e.Activate)); diff != "" {
			t.Fatalf("activated (-want +got):\n%s", diff)
		}
	}
	// Whichever comes first leads, and no other is invited then.
	if cycle := l.Cycles.Of(uid(1)); cycle.Purpose != Lead {
		t.Fatalf("cycle %+v", cycle)
	}
	if e := l.Agenda.Expire(testBackoff, t0.Add(time.Hour)); !e.Empty() {
		t.Fatalf("effects %+v while the gang is planned", e)
	}
	l.Cycles.Propose(uid(1), proposalFor(1, 2), t0)
	if cycle := l.Cycles.Of(uid(0)); cycle.Purpose != Wait {
		t.Errorf("cycle of the one that comes late and has no node: %+v", cycle)
	}
	if cycle := l.Cycles.Of(uid(2)); cycle.Purpose != Follow {
		t.Errorf("cycle of the one that comes late and has a node: %+v", cycle)
	}
}
