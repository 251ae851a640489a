package gang

import (
	"fmt"
	"time"
)

var (
	t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g1 = ID{Namespace: "ns", Name: "one"}
)

var testBackoff = Backoff{Initial: time.Second, Max: 8 * time.Second}

func uid(i int) UID { return UID(fmt.Sprintf("u%02d", i)) }

func pending(i int) Member {
	return Member{UID: uid(i), Namespace: "ns", Name: fmt.Sprintf("p%02d", i), Created: t0, State: Pending, Class: "a", Ours: true}
}

func bound(i int, node string) Member {
	m := pending(i)
	m.State, m.Node, m.Class = Bound, node, ""
	return m
}

// gangOf returns a ledger with one gang of n pending members of which minimum have to start together.
func gangOf(n, minimum int) *Ledger {
	l := NewLedger(time.Minute, nil)
	l.Define(g1, Spec{MinMember: minimum, Created: t0, UID: "g1", Timeout: time.Minute}, t0)
	for i := range n {
		l.Observe(g1, pending(i), t0)
	}
	return l
}

// seatsFor gives every listed member a node of its own.
func seatsFor(members ...int) map[UID]string {
	seats := map[UID]string{}
	for _, i := range members {
		seats[uid(i)] = fmt.Sprintf("n%02d", i)
	}
	return seats
}

func uids(refs []Ref) []UID {
	var out []UID
	for _, r := range refs {
		out = append(out, r.UID)
	}
	return out
}
