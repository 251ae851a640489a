package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang/obstacle"
)

func TestAssignmentsAreGivenBackTogether(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		do     func(l *Ledger) Effects
		reject []UID
		reason string
	}{
		{"when the PodGroup is deleted", func(l *Ledger) Effects { return l.Undefine(g1, Object, t0) }, []UID{uid(0), uid(1)},
			"PodGroup ns/one was deleted"},
		{"when the time is over", func(l *Ledger) Effects { return l.Agenda.Expire(testBackoff, t0.Add(time.Minute)) },
			[]UID{uid(0), uid(1)},
			"gang ns/one: 2 of 3 members had reserved a node when the schedule timeout of 1m0s was over"},
		{"when the timer of one in Permit ends first",
			func(l *Ledger) Effects { return l.Cycles.Unreserve(uid(0), testBackoff, t0.Add(time.Minute)) }, []UID{uid(1)},
			"gang ns/one: 2 of 3 members had reserved a node when the schedule timeout of 1m0s was over"},
		{"when the rest turns out not to fit", func(l *Ledger) Effects {
			l.Cycles.Broken(uid(2), obstacle.Text("node is gone"), testBackoff, t0)
			return l.Cycles.Block(g1, obstacle.Text("does not fit"), nil, testBackoff, t0)
		}, []UID{uid(0), uid(1)}, "does not fit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := plannedGangOf(t, 3, 3)
			reserve(t, l, 0, 1)
			who, why := rejected(tc.do(l))
			if diff := cmp.Diff(tc.reject, who); diff != "" {
				t.Errorf("rejected (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{tc.reason}, why); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			for _, uid := range who {
				if s := l.Cycles.Standing(uid); !s.Holds || s.Allowed {
					t.Errorf("%s is asked to give back what it holds (%t) and was let go (%t)", uid, s.Holds, s.Allowed)
				}
				l.Cycles.Unreserve(uid, testBackoff, t0)
			}
			if v, _ := l.View(g1); v.Holding != 0 {
				t.Errorf("%d assignments are held at the end", v.Holding)
			}
		})
	}
}

func TestNothingIsPlannedWhileAssignmentsAreGivenBack(t *testing.T) {
	t.Parallel()
	l := plannedGangOf(t, 3, 3)
	reserve(t, l, 0, 1)
	l.Agenda.Expire(testBackoff, t0.Add(time.Minute))
	for i, want := range []string{"gang ns/one is giving back 2 assignments", "gang ns/one is giving back 1 assignment"} {
		if _, waits := l.Agenda.Waiting(g1); waits {
			t.Fatal("the gang waits to be planned while its members hold assignments")
		}
		l.Agenda.Invite(g1, t0)
		if ok, why := l.Cycles.Admit(uid(2)); ok || words(why) != want {
			t.Fatalf("Admit = %t, %q; want %q", ok, why, want)
		}
		e := l.Cycles.Unreserve(uid(i), testBackoff, t0)
		if i == 1 {
			// The member that did not come does not lead.
			if diff := cmp.Diff([]UID{uid(0)}, uids(e.Activate)); diff != "" {
				t.Fatalf("the invitation holds until the last assignment is given back (-want +got):\n%s", diff)
			}
		}
	}
}

func TestSurplusDoesNotDelayTheMinimum(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		do   func(l *Ledger) Effects
	}{
		{"when it does not come", func(l *Ledger) Effects {
			if e := l.Agenda.Expire(testBackoff, t0.Add(stragglersGrace-1)); !e.Empty() {
				t.Fatalf("before the grace is over: %+v", e)
			}
			return l.Agenda.Expire(testBackoff, t0.Add(stragglersGrace))
		}},
		{"when the timer of another in Permit ends", func(l *Ledger) Effects {
			l.Cycles.Reserve(uid(2), node(2), t0)
			return l.Cycles.Unreserve(uid(2), testBackoff, t0.Add(time.Minute))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := plannedGangOf(t, 3, 2)
			reserve(t, l, 0, 1)
			e := tc.do(l)
			if diff := cmp.Diff([]UID{uid(0), uid(1)}, uids(e.Allow)); diff != "" {
				t.Errorf("the two that are enough go (-want +got):\n%s", diff)
			}
			if len(e.Reject) != 0 {
				t.Errorf("%v are asked to give their assignments back", e.Reject)
			}
			// What was left behind is placed like any pod once the others have started.
			l.Observe(g1, bound(0, node(0)), t0)
			l.Observe(g1, bound(1, node(1)), t0)
			if v, _ := l.View(g1); v.Count[Pending] > 0 {
				if cycle := l.Cycles.Of(uid(2)); cycle.Purpose != Alone {
					t.Errorf("cycle of the surplus member: %+v", cycle)
				}
			}
		})
	}
}

func TestPlanThatIsLostInACycleIsMadeAgain(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 2)
	l.Agenda.Invite(g1, t0)
	l.Cycles.Propose(uid(0), proposalFor(0, 1), t0)
	// The plan is lost between the beginning of the cycle and its end.
	l.Forget(uid(1), t0)
	if l.Cycles.Reserve(uid(0), node(0), t0) {
		t.Fatal("an assignment of a plan that was lost was taken")
	}
	if diff := cmp.Diff([]UID{uid(0)}, uids(l.Agenda.Invite(g1, t0).Activate)); diff != "" {
		t.Fatalf("the gang is tried again (-want +got):\n%s", diff)
	}
}
