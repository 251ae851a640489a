package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang/steps"
)

// growingGangOf returns a ledger with a gang that grows by steps of that size: the first members are bound, the others
// of all are pending.
func growingGangOf(size steps.Size, minimum, first, all int) *Ledger {
	l := NewLedger(time.Minute, nil)
	l.Define(g1, Object, minimumOf(minimum), t0)
	for i := range all {
		m := pending(i)
		if i < first {
			m = bound(i, node(i))
		}
		m.Steps = size
		l.Observe(g1, m, t0)
	}
	return l
}

// grown is member i of such a gang.
func grown(i int, size steps.Size, s State) Member {
	return changed(i, func(m *Member) { m.State, m.Steps = s, size })
}

func TestWhatAGangGrowsBy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ledger *Ledger
		// asked is the member whose turn it is.
		asked int
		want  Turn
		says  string
		// waits is what is missing to the next step, 0 if the gang does not wait to be planned.
		waits int
	}{
		"a step is planned as a whole":           {growingGangOf(steps.Double, 2, 2, 6), 2, Turn{Kind: Lead}, "", 2},
		"of what was lost the step is filled up": {growingGangOf(steps.Double, 2, 7, 9), 7, Turn{Kind: Lead}, "", 1},
		"what is less than a step waits": {growingGangOf("4", 2, 2, 5), 2, Turn{},
			"gang ns/one waits until 4 more can start together, and 3 exist", 0},
		"also where it would be the last": {growingGangOf(steps.Double, 2, 4, 7), 4, Turn{},
			"gang ns/one waits until 4 more can start together, and 3 exist", 0},
		"without steps members go one by one": {growingGangOf("", 2, 2, 3), 2, Turn{Kind: Free}, "", 0},
		"before the start the minimum counts": {growingGangOf(steps.Double, 2, 0, 3), 0, Turn{Kind: Lead}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := tc.ledger.Agenda.Waiting(g1)
			if w.Need.Total != tc.waits {
				t.Errorf("the gang waits for %d members, want %d", w.Need.Total, tc.waits)
			}
			tc.ledger.Agenda.Invite(g1, t0)
			got := tc.ledger.Cycles.Turn(uid(tc.asked))
			if got.Kind != tc.want.Kind || words(got.Why) != tc.says {
				t.Errorf("turn %d (%s), want %d (%s)", got.Kind, words(got.Why), tc.want.Kind, tc.says)
			}
			if got.Kind == Lead && (got.Need.Total != tc.waits || got.Grows != (got.Held > 0)) {
				t.Errorf("the leader plans for %d members, and the gang grows: %t", got.Need.Total, got.Grows)
			}
		})
	}
}

func TestAStepIsBoundWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	l := growingGangOf(steps.Double, 2, 2, 9)
	l.Agenda.Invite(g1, t0)
	if _, serves, _ := l.Cycles.Propose(uid(2), proposalFor(2), t0); serves {
		t.Error("a plan for less than a step serves")
	}
	l.Agenda.Invite(g1, t0)
	if _, serves, _ := l.Cycles.Propose(uid(2), proposalFor(2, 3, 4, 5, 6), t0); !serves {
		t.Fatal("a plan for more than a step does not serve")
	}
	if e := reserve(t, l, 2, 3, 4, 5); len(e.Allow)+len(e.Reject) > 0 {
		t.Errorf("before all have reserved: %+v", e)
	}
	// Seven of them would be between two steps.
	l.Cycles.Reserve(uid(6), node(6), t0)
	e, _, _, ok := l.Cycles.Permit(uid(6), t0)
	if ok {
		t.Error("the member beyond the step goes on")
	}
	if diff := cmp.Diff([]UID{uid(2), uid(3)}, uids(e.Allow)); diff != "" {
		t.Errorf("let go (-want +got):\n%s", diff)
	}
	out, _ := rejected(e)
	if diff := cmp.Diff([]UID{uid(5), uid(4)}, out); diff != "" {
		t.Errorf("asked for their assignments (-want +got):\n%s", diff)
	}
}

func TestAStepThatLosesAMemberIsGivenUp(t *testing.T) {
	t.Parallel()
	l := growingGangOf("4", 2, 2, 6)
	l.Agenda.Invite(g1, t0)
	l.Cycles.Propose(uid(2), proposalFor(2, 3, 4, 5), t0)
	reserve(t, l, 2, 3)
	e := l.Observe(g1, grown(5, "4", Failed), t0)
	out, why := rejected(e)
	if diff := cmp.Diff([]UID{uid(2), uid(3)}, out); diff != "" || len(why) != 1 {
		t.Errorf("asked for their assignments for %q (-want +got):\n%s", why, diff)
	}
	if turn := l.Cycles.Turn(uid(4)); turn.Kind != Hold {
		t.Errorf("turn %d, want none", turn.Kind)
	}
}

func TestTheMinimumIsReplacedBeforeAStep(t *testing.T) {
	t.Parallel()
	l := growingGangOf(steps.Double, 4, 4, 8)
	e := l.Observe(g1, grown(0, steps.Double, Failed), t0)
	if diff := cmp.Diff([]UID{uid(4)}, uids(e.Activate)); diff != "" {
		t.Errorf("activated to replace one member (-want +got):\n%s", diff)
	}
	if turn := l.Cycles.Turn(uid(4)); turn.Kind != Free {
		t.Errorf("turn %d of the replacement (%s), want that of an ordinary pod", turn.Kind, words(turn.Why))
	}
	const says = "gang ns/one has lost members and replaces these first: it grows by whole steps"
	if turn := l.Cycles.Turn(uid(5)); turn.Kind != Hold || words(turn.Why) != says {
		t.Errorf("turn %d of another (%s)", turn.Kind, words(turn.Why))
	}
	l.Observe(g1, changed(4, func(m *Member) { m.State, m.Node, m.Steps = Bound, "n", steps.Double }), t0)
	if v, _ := l.View(g1); v.Step.Total != 8 || v.Plans() {
		t.Errorf("the next step is %s, and enough members exist for it: %t; want 8, and one is missing", v.Step,
			v.Plans())
	}
}

func TestAStepWhoseBindingFailsIsTriedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	l := growingGangOf("2", 2, 2, 4)
	l.Agenda.Invite(g1, t0)
	l.Cycles.Propose(uid(2), proposalFor(2, 3), t0)
	reserve(t, l, 2, 3)
	l.Cycles.Unreserve(uid(3), testBackoff, t0)
	l.Observe(g1, changed(2, func(m *Member) { m.State, m.Node, m.Steps = Bound, "n", "2" }), t0)
	w, ok := l.Agenda.Waiting(g1)
	if !ok || w.Fresh || w.Need.Total != 1 || !w.Grows {
		t.Errorf("the gang waits %t for %d members, for the first time %t", ok, w.Need.Total, w.Fresh)
	}
}
