package gang

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var anyOrder = cmpopts.SortSlices(func(a, b UID) bool { return a < b })

func TestAdmit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		ledger func() *Ledger
		pod    UID
		ok     bool
		why    string
	}{
		{"a pod of which nothing is known waits", func() *Ledger { return NewLedger(time.Minute, nil) }, uid(0), false, "waiting until the group of the pod is known"},
		{"a member waits for its PodGroup", func() *Ledger {
			l := NewLedger(time.Minute, nil)
			l.Observe(g1, pending(0), t0)
			return l
		}, uid(0), false, "waiting for PodGroup ns/one"},
		{"a member waits for siblings", func() *Ledger { return gangOf(3, 4) }, uid(0), false, "gang ns/one has 3 of the 4 members that it needs"},
		{"the oldest member of a full gang leads", func() *Ledger { return gangOf(4, 4) }, uid(0), true, ""},
		{"the others are represented", func() *Ledger { return gangOf(4, 4) }, uid(2), false, "gang ns/one is represented by pod p00"},
		{"gated members do not count", func() *Ledger {
			l := gangOf(4, 4)
			m := pending(3)
			m.State = Gated
			l.Observe(g1, m, t0)
			return l
		}, uid(0), false, "gang ns/one has 3 of the 4 members that it needs"},
		{"members that have finished count", func() *Ledger {
			l := gangOf(4, 4)
			m := pending(3)
			m.State = Succeeded
			l.Observe(g1, m, t0)
			return l
		}, uid(0), true, ""},
		{"members that another scheduler places count but never lead", func() *Ledger {
			l := gangOf(4, 4)
			m := pending(0)
			m.Ours = false
			l.Observe(g1, m, t0)
			return l
		}, uid(1), true, ""},
		{"a lowered minimum is enough", func() *Ledger {
			l := gangOf(3, 4)
			l.Define(g1, Spec{MinMember: 3, Created: t0, UID: "g1"}, t0)
			return l
		}, uid(0), true, ""},
		{"a PodGroup that was deleted is waited for again", func() *Ledger {
			l := gangOf(4, 4)
			l.Undefine(g1, t0)
			return l
		}, uid(0), false, "waiting for PodGroup ns/one"},
		{"surplus members of a started gang are ordinary pods", func() *Ledger {
			l := gangOf(5, 4)
			for i := range 4 {
				l.Observe(g1, bound(i, "n"), t0)
			}
			return l
		}, uid(4), true, ""},
		{"a siblings in the plan may follow", func() *Ledger {
			l := gangOf(4, 4)
			l.Propose(uid(0), seatsFor(0, 1, 2, 3), t0)
			return l
		}, uid(3), true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ok, why := tc.ledger().Admit(tc.pod)
			if ok != tc.ok || why != tc.why {
				t.Errorf("Admit(%s) = %t, %q; want %t, %q", tc.pod, ok, why, tc.ok, tc.why)
			}
		})
	}
}

func TestMembersAreActivatedOnceWhenTheyMayGo(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 4)
	e := l.Observe(g1, pending(3), t0)
	if diff := cmp.Diff([]UID{uid(0)}, uids(e.Activate)); diff != "" {
		t.Fatalf("the last member completes the gang and wakes its leader (-want +got):\n%s", diff)
	}
	if e := l.Observe(g1, pending(3), t0); !e.Empty() {
		t.Fatalf("an observation that says nothing new has effects %+v", e)
	}
	if ok, why := l.Admit(uid(0)); !ok {
		t.Fatalf("the leader is not admitted: %s", why)
	}
	e, ok := l.Propose(uid(0), seatsFor(0, 1, 2, 3), t0)
	if !ok {
		t.Fatal("the plan was refused")
	}
	if diff := cmp.Diff([]UID{uid(1), uid(2), uid(3)}, uids(e.Activate), anyOrder); diff != "" {
		t.Fatalf("the plan wakes the siblings (-want +got):\n%s", diff)
	}
}

func TestGangGoesTogether(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 3)
	if _, ok := l.Propose(uid(0), seatsFor(0, 1, 2), t0); !ok {
		t.Fatal("the plan was refused")
	}
	for i := range 2 {
		if _, ok := l.Reserve(uid(i), seatsFor(i)[uid(i)], t0); !ok {
			t.Fatalf("member %d could not take its seat", i)
		}
		e, wait, ok := l.Permit(uid(i), t0.Add(time.Second))
		if !ok || wait != 59*time.Second || !e.Empty() {
			t.Fatalf("member %d: wait %s, ok %t, effects %+v; want it to wait for the rest of the timeout", i, wait, ok, e)
		}
	}
	l.Observe(g1, pending(3), t0)
	if _, ok := l.Reserve(uid(3), "n03", t0); ok {
		t.Fatal("a member without a seat in the plan took one")
	}
	if _, ok := l.Reserve(uid(2), "n02", t0); !ok {
		t.Fatal("the last member could not take its seat")
	}
	e, wait, ok := l.Permit(uid(2), t0)
	if !ok || wait != 0 {
		t.Fatalf("the last member waits %s, ok %t", wait, ok)
	}
	if diff := cmp.Diff([]UID{uid(0), uid(1)}, uids(e.Allow), anyOrder); diff != "" {
		t.Fatalf("the last member lets the others go (-want +got):\n%s", diff)
	}
}

func TestSeatsAreGivenBackTogether(t *testing.T) {
	t.Parallel()
	waiting := func() *Ledger {
		l := gangOf(3, 3)
		l.Propose(uid(0), seatsFor(0, 1, 2), t0)
		for i := range 2 {
			l.Reserve(uid(i), seatsFor(i)[uid(i)], t0)
			l.Permit(uid(i), t0)
		}
		return l
	}
	for _, tc := range []struct {
		name   string
		do     func(l *Ledger) Effects
		reject []UID
		reason string
	}{
		{"when a waiting member times out", func(l *Ledger) Effects { return l.Unreserve(uid(0), t0) }, []UID{uid(1)},
			"gang ns/one lost a member before all 3 had a seat"},
		{"when a member that has no seat yet is deleted", func(l *Ledger) Effects { return l.Forget(uid(2), t0) }, []UID{uid(0), uid(1)},
			"gang ns/one lost a member before all 3 had a seat"},
		{"when the PodGroup is deleted", func(l *Ledger) Effects { return l.Undefine(g1, t0) }, []UID{uid(0), uid(1)},
			"PodGroup ns/one was deleted"},
		{"when the time is over", func(l *Ledger) Effects { return l.Expire(testBackoff, t0.Add(2*time.Minute)) }, []UID{uid(0), uid(1)},
			"gang ns/one: 2 of 3 seats reserved when the schedule timeout of 1m0s was over"},
		{"when the rest turns out not to fit", func(l *Ledger) Effects {
			l.Broken(uid(2), "node is gone", testBackoff, t0)
			return l.Block(uid(2), "does not fit", testBackoff, t0)
		}, []UID{uid(0), uid(1)}, "does not fit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := tc.do(waiting())
			if diff := cmp.Diff(tc.reject, uids(e.Reject), anyOrder); diff != "" {
				t.Errorf("rejected (-want +got):\n%s", diff)
			}
			if e.Reason != tc.reason {
				t.Errorf("reason %q, want %q", e.Reason, tc.reason)
			}
		})
	}
}

func TestPlanLosesAnUnneededSeat(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 2)
	l.Propose(uid(0), seatsFor(0, 1, 2), t0)
	for i := range 2 {
		l.Reserve(uid(i), seatsFor(i)[uid(i)], t0)
		l.Permit(uid(i), t0)
	}
	e := l.Forget(uid(2), t0)
	if diff := cmp.Diff([]UID{uid(0), uid(1)}, uids(e.Allow), anyOrder); diff != "" {
		t.Errorf("the two that are enough go (-want +got):\n%s", diff)
	}
}

func TestBrokenSeatIsPlannedAnewForTheRest(t *testing.T) {
	t.Parallel()
	l := gangOf(4, 4)
	l.Propose(uid(0), seatsFor(0, 1, 2, 3), t0)
	for i := range 2 {
		l.Reserve(uid(i), seatsFor(i)[uid(i)], t0)
		l.Permit(uid(i), t0)
	}
	e := l.Broken(uid(2), "node is gone", testBackoff, t0)
	if diff := cmp.Diff([]UID{uid(2)}, uids(e.Activate)); diff != "" {
		t.Fatalf("the member whose seat is gone leads (-want +got):\n%s", diff)
	}
	turn := l.Turn(uid(2))
	var members []UID
	for _, m := range turn.Members {
		members = append(members, m.UID)
	}
	if turn.Kind != Lead || turn.Need != 2 || turn.Held != 2 || !slices.Equal(members, []UID{uid(2), uid(3)}) {
		t.Fatalf("turn %+v; want to lead members 2 and 3 with 2 held", turn)
	}
	if _, ok := l.Propose(uid(2), map[UID]string{uid(2): "x", uid(3): "y"}, t0); !ok {
		t.Fatal("the second plan was refused")
	}
	l.Reserve(uid(2), "x", t0)
	l.Reserve(uid(3), "y", t0)
	e, wait, ok := l.Permit(uid(3), t0)
	if !ok || wait != 0 {
		t.Fatalf("the last member waits %s, ok %t", wait, ok)
	}
	if diff := cmp.Diff([]UID{uid(0), uid(1), uid(2)}, uids(e.Allow), anyOrder); diff != "" {
		t.Errorf("all go (-want +got):\n%s", diff)
	}
}

func TestBlockedGangIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	l.Admit(uid(0))
	since := func(time.Time) bool { return true }
	now := t0
	for _, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
		l.Block(uid(0), "too big", testBackoff, now)
		if want > 0 {
			due, next := l.Due(now, since)
			if len(due) != 0 || next.Sub(now) != want {
				t.Fatalf("after the failure the next attempt is in %s and %d gangs are due, want in %s", next.Sub(now), len(due), want)
			}
			now = next
		}
		due, _ := l.Due(now, since)
		if len(due) != 1 || due[0].Need != 2 || due[0].Classes["a"] != 2 {
			t.Fatalf("due %+v; want the gang with two members to seat", due)
		}
		e := l.Retry(due[0].ID, now)
		if diff := cmp.Diff([]UID{uid(0)}, uids(e.Activate)); diff != "" {
			t.Fatalf("the leader is woken (-want +got):\n%s", diff)
		}
	}
}

func TestHalfBoundGangIsCompletedFirst(t *testing.T) {
	t.Parallel()
	l := gangOf(4, 4)
	for i := range 2 {
		l.Observe(g1, bound(i, "n"), t0)
	}
	turn := l.Turn(uid(2))
	if turn.Kind != Lead || turn.Need != 2 || turn.Held != 2 {
		t.Fatalf("turn %+v; want to lead for the two that are missing", turn)
	}
}

func TestDegradedGangComesFirst(t *testing.T) {
	t.Parallel()
	l := gangOf(4, 4)
	for i := range 4 {
		l.Observe(g1, bound(i, "n"), t0)
	}
	l.Forget(uid(3), t0)
	l.Observe(g1, pending(9), t0)
	if ok, why := l.Admit(uid(9)); !ok {
		t.Fatalf("the replacement is held back: %s", why)
	}
	k, _ := l.Key(uid(9))
	if !k.Degraded {
		t.Errorf("key %+v; want it to be degraded", k)
	}
}

func TestSeatIsTakenOnThePlannedNodeOnly(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	l.Propose(uid(0), seatsFor(0, 1), t0)
	if _, ok := l.Reserve(uid(1), "elsewhere", t0); ok {
		t.Fatal("a member took another seat than its own")
	}
	if v, _ := l.View(g1); v.Seated != 0 {
		t.Fatalf("%d members hold seats, want none", v.Seated)
	}
	if _, ok := l.Reserve(uid(1), "n01", t0); !ok {
		t.Fatal("the planned seat was refused")
	}
}

func TestPlanThatIsLostInACycleIsMadeAgain(t *testing.T) {
	t.Parallel()
	l := gangOf(3, 2)
	l.Propose(uid(0), seatsFor(0, 1), t0)
	if turn := l.Turn(uid(0)); turn.Kind != Follow {
		t.Fatalf("turn %+v; want to follow", turn)
	}
	// The plan is lost between the beginning of the cycle and its end.
	l.Forget(uid(1), t0)
	e, ok := l.Reserve(uid(0), "n00", t0)
	if ok {
		t.Fatal("a seat of a plan that was lost was taken")
	}
	if diff := cmp.Diff([]UID{uid(0)}, uids(e.Activate)); diff != "" {
		t.Fatalf("the gang is tried again (-want +got):\n%s", diff)
	}
}

func TestBlockedGangWaitsForNews(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	l.Block(uid(0), "too big", testBackoff, t0)
	if ok, why := l.Admit(uid(0)); ok || why != "too big" {
		t.Fatalf("Admit of a blocked gang's leader = %t, %q", ok, why)
	}
	if l.Reopen(uid(1)) {
		t.Fatal("a member that does not lead reopened its gang")
	}
	if !l.Reopen(uid(0)) {
		t.Fatal("the leader could not reopen its gang")
	}
	if ok, why := l.Admit(uid(0)); !ok {
		t.Fatalf("the leader is held back after news: %s", why)
	}
}

func TestMembersAreNewsToABlockedGang(t *testing.T) {
	t.Parallel()
	changed := func(i int, class string) Member {
		m := pending(i)
		m.Class = class
		return m
	}
	for _, tc := range []struct {
		name string
		m    Member
		want []UID
	}{
		{"one more of a kind is none", changed(9, "a"), nil},
		{"one of another kind is", changed(9, "b"), []UID{uid(0)}},
		{"one that asks for something else now is", changed(1, "b"), []UID{uid(0)}},
		{"one that is as it was is none", changed(1, "a"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := gangOf(2, 2)
			l.Block(uid(0), "too big", testBackoff, t0)
			e := l.Observe(g1, tc.m, t0)
			if diff := cmp.Diff(tc.want, uids(e.Activate)); diff != "" {
				t.Errorf("tried again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestViewTellsPrioritiesThatDiffer(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	if v, _ := l.View(g1); len(v.Priorities) != 0 {
		t.Fatalf("priorities %v of members that agree", v.Priorities)
	}
	m := pending(1)
	m.Priority = -5
	l.Observe(g1, m, t0)
	v, _ := l.View(g1)
	if diff := cmp.Diff([]int32{-5, 0}, v.Priorities); diff != "" {
		t.Errorf("priorities (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]UID{uid(0), uid(1)}, uids(l.Members(g1))); diff != "" {
		t.Errorf("members, the oldest first (-want +got):\n%s", diff)
	}
}
