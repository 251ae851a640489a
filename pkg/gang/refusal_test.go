package gang

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang/obstacle"
)

func TestPlanThatRepeatsItsMistakeBlocks(t *testing.T) {
	t.Parallel()
	l := plannedGangOf(t, 3, 3)
	reserve(t, l, 0)
	l.Cycles.Broken(uid(1), obstacle.Text("planned node n01: cannot allocate all claims"), testBackoff, t0)
	if _, serves, _ := l.Cycles.Propose(uid(1), proposalFor(1, 2), t0); !serves {
		t.Fatal("the second plan does not serve")
	}
	e := l.Cycles.Broken(uid(1), obstacle.Text("planned node n01: cannot allocate all claims"), testBackoff, t0)
	who, why := rejected(e)
	if diff := cmp.Diff([]UID{uid(0)}, who); diff != "" {
		t.Errorf("assignments to give back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"planned node n01: cannot allocate all claims"}, why); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	l.Cycles.Unreserve(uid(0), testBackoff, t0)
	v, _ := l.View(g1)
	if v.Holding != 0 || words(v.Reason) != "planned node n01: cannot allocate all claims" {
		t.Errorf("holding %d, reason %q; want the gang to hold nothing and to be blocked with the reason", v.Holding,
			v.Reason)
	}
	if _, waits := l.Agenda.Waiting(g1); !waits {
		t.Error("the gang does not wait to be planned again")
	}
	if len(l.Refused(g1)) != 0 {
		t.Error("nodes are left out of the next plan although the cluster may have changed")
	}
}

func TestRefusalsInARowBlock(t *testing.T) {
	t.Parallel()
	l := plannedGangOf(t, 3, 3)
	refusals := 0
	for blocked := false; !blocked; {
		refusals++
		l.Cycles.Broken(uid(0), obstacle.Text(fmt.Sprint("refusal ", refusals)), testBackoff, t0)
		p := proposalFor(1, 2)
		p.Assignments = append(p.Assignments, Assignment{UID: uid(0), Node: fmt.Sprint("x", refusals)})
		if v, _ := l.View(g1); v.Reason != nil || refusals > 9 {
			blocked = true
		} else {
			l.Cycles.Propose(uid(0), p, t0)
		}
	}
	if v, _ := l.View(g1); refusals != maxSetbacks+1 || words(v.Reason) != "refusal 4" {
		t.Errorf("after %d refusals: reason %q", refusals, v.Reason)
	}
	// A member that reserves in between shows that the plan gets on.
	l = plannedGangOf(t, 3, 3)
	for i := range maxSetbacks + 2 {
		l.Cycles.Broken(uid(2), obstacle.Text("refused"), testBackoff, t0)
		p := Proposal{Assignments: []Assignment{{UID: uid(2), Node: fmt.Sprint("x", i)}}}
		for late := i; late < 2; late++ {
			p.Assignments = append(p.Assignments, proposalFor(late).Assignments...)
		}
		if _, serves, _ := l.Cycles.Propose(uid(2), p, t0); !serves {
			t.Fatalf("plan %d does not serve", i)
		}
		if i < 2 {
			reserve(t, l, i)
		}
	}
	if v, _ := l.View(g1); v.Reason != nil {
		t.Errorf("blocked with %q although members reserved in between", v.Reason)
	}
}

func TestOrdinaryMemberWhoseReserveFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		reserve bool
	}{
		{"before this plugin", false},
		{"after this plugin", true},
	} {
		l := runningGangOf(2, 2)
		l.Observe(g1, pending(2), t0)
		l.Cycles.Admit(uid(2))
		l.Cycles.Of(uid(2))
		if tc.reserve {
			l.Cycles.Reserve(uid(2), "x", t0)
		}
		if diff := cmp.Diff(Effects{Landed: tc.reserve}, l.Cycles.Unreserve(uid(2), testBackoff, t0)); diff != "" {
			t.Errorf("%s: effects (-want +got):\n%s", tc.name, diff)
		}
		if v, _ := l.View(g1); v.Holding != 0 || v.Reason != nil {
			t.Errorf("%s: holding %d, reason %q", tc.name, v.Holding, v.Reason)
		}
		if ok, why := l.Cycles.Admit(uid(2)); !ok {
			t.Errorf("%s: the member is held: %s", tc.name, why)
		}
	}
}

func TestMembersThatCannotBeBoundArePlannedAgainWithAGrowingPause(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	now := t0
	for _, pause := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
		l.Agenda.Invite(g1, now)
		if _, serves, _ := l.Cycles.Propose(l.groups[g1].lead().UID, proposalFor(0, 1), now); !serves {
			t.Fatal("the plan does not serve")
		}
		reserve(t, l, 0, 1)
		l.Cycles.Unreserve(uid(1), testBackoff, now)
		if ok, why := l.Cycles.Admit(uid(1)); ok || words(why) != "gang ns/one is starting" {
			t.Fatalf("Admit = %t, %q while a sibling is being bound", ok, why)
		}
		l.Cycles.Unreserve(uid(0), testBackoff, now)
		w, waits := l.Agenda.Waiting(g1)
		if !waits || w.Fresh || w.RetryAt.Sub(now) != pause {
			t.Fatalf("Waiting = %+v, %t; want a pause of %s", w, waits, pause)
		}
		if v, _ := l.View(g1); words(v.Reason) != "gang ns/one: pod p01 could not be bound to node n01" || v.Holding != 0 {
			t.Fatalf("reason %q, holding %d", v.Reason, v.Holding)
		}
		now = w.RetryAt
	}
}
