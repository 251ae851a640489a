package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang/obstacle"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	invited := func(l *Ledger) *Ledger {
		l.Agenda.Invite(g1, t0)
		return l
	}
	for _, tc := range []struct {
		name   string
		ledger func() *Ledger
		pod    UID
		ok     bool
		why    string
	}{
		{"a pod of which nothing is known waits", func() *Ledger { return NewLedger(time.Minute, nil) }, uid(0), false,
			"waiting until the group of the pod is known"},
		{"a member waits for its PodGroup", func() *Ledger {
			l := NewLedger(time.Minute, nil)
			l.Observe(g1, pending(0), t0)
			return l
		}, uid(0), false, "waiting for PodGroup ns/one, which does not exist"},
		{"a note says why there is no specification", func() *Ledger {
			l := NewLedger(time.Minute, nil)
			l.Observe(g1, pending(0), t0)
			l.Note(g1, "label pod-group/min-available is missing")
			return l
		}, uid(0), false, "label pod-group/min-available is missing"},
		{"a member waits for siblings with a role", func() *Ledger {
			l := gangOf(4, 4)
			l.Define(g1, Object, Spec{Minimum: Minimum{Total: 4, Roles: map[string]int{"leader": 1}}, Created: t0, UID: "g1"},
				t0)
			return l
		}, uid(0), false, "gang ns/one has 0 of the 1 member with role leader that it needs"},
		{"the others are represented", func() *Ledger { return invited(gangOf(4, 4)) }, uid(2), false,
			"gang ns/one is represented by pod p00"},
	} {
		ok, why := tc.ledger().Cycles.Admit(tc.pod)
		if ok != tc.ok || words(why) != tc.why {
			t.Errorf("%s: Admit(%s) = %t, %q; want %t, %q", tc.name, tc.pod, ok, why, tc.ok, tc.why)
		}
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	if v, _ := l.View(g1); len(v.Priorities) != 0 {
		t.Fatalf("priorities %v of members that agree", v.Priorities)
	}
	roles := Minimum{Total: 2, Roles: map[string]int{"leader": 1}}
	l.Define(g1, Object, Spec{Minimum: roles, Created: t0, UID: "g1"}, t0)
	l.Observe(g1, changed(1, func(m *Member) { m.Priority, m.Role = -5, "worker" }), t0)
	l.Observe(g1, changed(2, func(m *Member) { m.Role, m.State, m.Node, m.Running = "leader", Bound, "n", true }), t0)
	l.Observe(g1, changed(3, func(m *Member) { m.Ours = false }), t0)
	l.Observe(g1, inState(4, Failed), t0)
	l.Note(g1, "note")
	l.Agenda.Invite(g1, t0)
	l.Cycles.Of(uid(0))
	l.Cycles.Block(g1, obstacle.Text("too big"), nil, testBackoff, t0)
	v, _ := l.View(g1)
	want := View{
		Counts:   Counts{Running: 1, Foreign: 1, Roles: map[string]ByState{"leader": {Bound: 1}, "worker": {Pending: 1}}},
		Priority: -5, Priorities: []int32{-5, 0},
		Minimum: roles, Note: "note", Reason: obstacle.Text("too big"),
		Any: Ref{UID: uid(3), Namespace: "ns", Name: "p03"},
	}
	want.Count[Pending], want.Count[Bound], want.Count[Failed] = 3, 1, 1
	if diff := cmp.Diff(want, v, exactly); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if !v.Quorum() || v.Met() || v.Underway() {
		t.Errorf("quorum %t, met %t, underway %t; want a quorum that is blocked", v.Quorum(), v.Met(), v.Underway())
	}
	if diff := cmp.Diff([]UID{uid(0), uid(1), uid(2), uid(3), uid(4)}, uids(l.Members(g1))); diff != "" {
		t.Errorf("members, the oldest first (-want +got):\n%s", diff)
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state  string
		ledger *Ledger
	}{
		{"incomplete", gangOf(1, 2)},
		{"waiting", gangOf(2, 2)},
		{"unschedulable", func() *Ledger {
			l := gangOf(2, 2)
			l.Agenda.RuleOut(g1, obstacle.Text("no room"), t0)
			return l
		}()},
		{"starting", plannedGangOf(t, 2, 2)},
		{"started", runningGangOf(2, 2)},
		{"degraded", func() *Ledger {
			l := runningGangOf(2, 2)
			l.Forget(uid(0), t0)
			return l
		}()},
		{"", func() *Ledger {
			l := NewLedger(time.Minute, nil)
			l.Recall(g1, HadStarted, t0)
			return l
		}()},
	} {
		want := map[string]int{"incomplete": 0, "waiting": 0, "unschedulable": 0, "starting": 0, "degraded": 0, "started": 0}
		if tc.state != "" {
			want[tc.state] = 1
		}
		if diff := cmp.Diff(want, tc.ledger.Tally()); diff != "" {
			t.Errorf("a gang that is %q (-want +got):\n%s", tc.state, diff)
		}
	}
}

func TestMembersThatCanBeSpared(t *testing.T) {
	t.Parallel()
	l := gangOf(0, 2)
	roles := Minimum{Total: 2, Roles: map[string]int{"leader": 1}}
	l.Define(g1, Object, Spec{Minimum: roles, Created: t0, UID: "g1"}, t0)
	for i, m := range []struct {
		role     string
		priority int32
		age      time.Duration
	}{{"leader", 0, 0}, {"", 1, 0}, {"", 0, time.Hour}, {"", 0, 0}} {
		l.Observe(g1, changed(i, func(n *Member) {
			n.State, n.Node, n.Role, n.Priority, n.Created = Bound, "n", m.role, m.priority, t0.Add(-m.age)
		}), t0)
	}
	// The leader is the least important, and needed; of the others the most important stays.
	all := []UID{uid(0), uid(1), uid(2), uid(3)}
	for i, want := range []bool{false, false, true, true} {
		if got := l.Evictions.Surplus(uid(i), all, t0); got != want {
			t.Errorf("member %d is surplus: %t, want %t", i, got, want)
		}
	}
	if !l.Evictions.Surplus(uid(1), all[:2], t0) {
		t.Error("the most important one cannot be spared where there are no others to choose")
	}
	for pod, want := range map[UID]bool{"unknown": true, uid(0): false, uid(2): true} {
		if got := l.Evictions.EvictMember(pod, t0.Add(time.Minute), t0); got != want {
			t.Errorf("%s may go: %t, want %t", pod, got, want)
		}
	}
	for i, want := range []bool{false, false, false, true} {
		if got := l.Evictions.Surplus(uid(i), all, t0); got != want {
			t.Errorf("while another is evicted member %d is surplus: %t, want %t", i, got, want)
		}
	}
	l.Forget(uid(0), t0)
	if l.Evictions.Surplus(uid(3), all, t0) {
		t.Error("a gang below its minimum has surplus")
	}
	if !l.Evictions.Surplus("unknown", nil, t0) {
		t.Error("a pod of no gang cannot be spared")
	}
}

func TestHeldMembersAreToldWhy(t *testing.T) {
	t.Parallel()
	why := func(l *Ledger) map[UID]string {
		out := map[UID]string{}
		for r, why := range l.Held(g1) {
			out[r.UID] = why.String()
		}
		return out
	}
	for _, tc := range []struct {
		name string
		do   func(l *Ledger)
		want map[UID]string
	}{
		{"by the leader's cycle, which says so itself", func(l *Ledger) {
			l.Agenda.Invite(g1, t0)
			l.Cycles.Of(uid(0))
			l.Cycles.Block(g1, obstacle.Text("too big"), nil, testBackoff, t0)
		}, map[UID]string{uid(1): "too big"}},
		{"a leader that was not tried yet has nothing to say", func(*Ledger) {},
			map[UID]string{uid(1): "gang ns/one is represented by pod p00"}},
		{"members of other schedulers are not ours to tell", func(l *Ledger) {
			l.Observe(g1, changed(1, func(m *Member) { m.Ours = false }), t0)
			l.Agenda.RuleOut(g1, obstacle.Text("no room"), t0)
		}, map[UID]string{uid(0): "no room"}},
	} {
		l := gangOf(2, 2)
		tc.do(l)
		if diff := cmp.Diff(tc.want, why(l)); diff != "" {
			t.Errorf("%s: held (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestNodesAreThoseOfBoundMembersAndOfAssignmentsInMemory(t *testing.T) {
	t.Parallel()
	l := plannedGangOf(t, 3, 3)
	reserve(t, l, 0, 1)
	l.Observe(g1, bound(7, "x"), t0)
	if diff := cmp.Diff(map[string]int{node(0): 1, node(1): 1, "x": 1}, l.Nodes(g1)); diff != "" {
		t.Errorf("nodes while the gang starts (-want +got):\n%s", diff)
	}
	// A replacement counts from the moment that it has reserved, so that the next one joins it in its rack.
	l = runningGangOf(2, 2)
	l.Observe(g1, inState(0, Failed), t0)
	l.Observe(g1, pending(2), t0)
	l.Cycles.Of(uid(2))
	if !l.Cycles.Reserve(uid(2), "y", t0) {
		t.Fatal("a replacement cannot reserve")
	}
	if diff := cmp.Diff(map[string]int{node(1): 1, "y": 1}, l.Nodes(g1)); diff != "" {
		t.Errorf("nodes while a replacement is bound (-want +got):\n%s", diff)
	}
}

func TestToAskWhetherAMemberMayEnterChangesNothingInItsCycle(t *testing.T) {
	t.Parallel()
	l := runningGangOf(4, 4)
	l.Forget(uid(3), t0)
	l.Observe(g1, pending(9), t0)
	l.Cycles.Admit(uid(9))
	if cycle := l.Cycles.Of(uid(9)); cycle.Purpose != Alone {
		t.Fatalf("the purpose of a replacement is %v", cycle.Purpose)
	}
	if ok, why := l.Cycles.MayEnter(uid(9)); !ok {
		t.Errorf("it may not enter: %s", why)
	}
	if !l.Cycles.Reserve(uid(9), "n3", t0) {
		t.Error("it may not reserve its node any more")
	}
}
