package gang

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
)

var (
	t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g1 = ID{Namespace: "ns", Name: "one"}
	g2 = ID{Namespace: "ns", Name: "two"}
)

var testBackoff = Backoff{Initial: time.Second, Max: 8 * time.Second}

func uid(i int) UID { return UID(fmt.Sprintf("u%02d", i)) }

// node is the node that the proposals of these tests give to member i.
func node(i int) string { return fmt.Sprintf("n%02d", i) }

func pending(i int) Member {
	return Member{Ref: Ref{UID: uid(i), Namespace: "ns", Name: fmt.Sprintf("p%02d", i)}, Created: t0, State: Pending,
		Class: "a", Ours: true}
}

// changed returns pending member i with something else about it.
func changed(i int, how func(m *Member)) Member {
	m := pending(i)
	how(&m)
	return m
}

func bound(i int, node string) Member {
	return changed(i, func(m *Member) { m.State, m.Node, m.Class = Bound, node, "" })
}

func inState(i int, s State) Member { return changed(i, func(m *Member) { m.State = s }) }

func minimumOf(n int) Spec {
	return Spec{Minimum: Minimum{Total: n}, Created: t0, UID: "g1", Timeout: time.Minute}
}

// gangOf returns a ledger with one gang of n pending members and a minimum.
func gangOf(n, minimum int) *Ledger {
	l := NewLedger(time.Minute, nil)
	l.Define(g1, Object, minimumOf(minimum), t0)
	for i := range n {
		l.Observe(g1, pending(i), t0)
	}
	return l
}

// runningGangOf returns a ledger with one gang of n bound members and a minimum.
func runningGangOf(n, minimum int) *Ledger {
	l := gangOf(n, minimum)
	for i := range n {
		l.Observe(g1, bound(i, node(i)), t0)
	}
	return l
}

// proposalFor gives every listed member a node of its own.
func proposalFor(members ...int) Proposal {
	var p Proposal
	for _, i := range members {
		p.Assignments = append(p.Assignments, Assignment{UID: uid(i), Node: node(i)})
	}
	return p
}

// plannedGangOf returns a ledger with one gang all of whose n members are in its plan.
func plannedGangOf(t *testing.T, n, minimum int) *Ledger {
	t.Helper()
	l := gangOf(n, minimum)
	l.Agenda.Invite(g1, t0)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if _, serves, proceed := l.Cycles.Propose(uid(0), proposalFor(all...), t0); !serves || !proceed {
		t.Fatalf("the plan serves %t, its leader goes on %t", serves, proceed)
	}
	return l
}

// reserve lets the members take their assignments and wait in Permit.
func reserve(t *testing.T, l *Ledger, members ...int) Effects {
	t.Helper()
	var all Effects
	for _, i := range members {
		if !l.Cycles.Reserve(uid(i), node(i), t0) {
			t.Fatalf("member %d cannot reserve", i)
		}
		e, _, _, ok := l.Cycles.Permit(uid(i), t0)
		if !ok {
			t.Fatalf("member %d has lost its assignment", i)
		}
		all.Activate, all.Allow = append(all.Activate, e.Activate...), append(all.Allow, e.Allow...)
		all.Reject = append(all.Reject, e.Reject...)
	}
	return all
}

// releasedGangOf returns a ledger with one gang all of whose n members have been let go.
func releasedGangOf(t *testing.T, n, minimum int) *Ledger {
	t.Helper()
	l := plannedGangOf(t, n, minimum)
	for i := range n {
		reserve(t, l, i)
	}
	return l
}

// words returns what a reason says, nothing for none.
func words(r obstacle.Reason) string {
	if r == nil {
		return ""
	}
	return r.String()
}

func uids(refs []Ref) []UID {
	var out []UID
	for _, r := range refs {
		out = append(out, r.UID)
	}
	return out
}

// rejected returns who has to give its assignment back, and the reasons without repetition.
func rejected(e Effects) (out []UID, reasons []string) {
	for _, r := range e.Reject {
		out = append(out, r.UID)
		if len(reasons) == 0 || reasons[len(reasons)-1] != r.Reason.String() {
			reasons = append(reasons, r.Reason.String())
		}
	}
	return out, reasons
}
