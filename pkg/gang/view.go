package gang

import (
	"maps"
	"slices"
)

// View is what a group looks like from outside.
type View struct {
	// MinMember is 0 while the group has no specification.
	MinMember int
	// Count holds the number of members by state.
	Count [states]int
	// Running is the number of bound members that run.
	Running int
	// Seated is the number of members that hold a seat in memory.
	Seated int
	// Degraded is set while a group that had started has fewer than its minimum.
	Degraded bool
	// Reason says why the group did not fit when it was last tried; empty if it was not or is being tried.
	Reason string
	// Leader stands for the group in the queue; its UID is empty if there is none.
	Leader Ref
	// Any is one of the members.
	Any Ref
	// Labelled is the minimum that members carry themselves, 0 if none does.
	Labelled int
	// Priorities holds those of the members, the lowest first, if they differ.
	Priorities []int32
}

// Settled is the number of members that count as placed.
func (v *View) Settled() int { return v.Count[Bound] + v.Count[Succeeded] }

// Existing is the number of members that count towards the quorum.
func (v *View) Existing() int { return v.Settled() + v.Count[Pending] }

// Underway reports whether the group is expected to start in a moment: its members are being created, or it is being
// planned and bound.
func (v *View) Underway() bool { return v.Reason == "" && !v.Degraded && v.Settled() < v.MinMember }

// View returns what the group looks like, and false if nothing is known of it.
func (l *Ledger) View(id ID) (View, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return View{}, false
	}
	v := View{Count: g.count, Running: g.running, Seated: g.seated, Degraded: g.started && !g.complete()}
	if s := g.spec(); s != nil {
		v.MinMember = s.MinMember
	}
	if g.block != nil {
		v.Reason = g.block.reason
	}
	if g.leader != nil {
		v.Leader = g.leader.Ref()
	}
	for _, m := range g.members {
		v.Any = m.Ref()
		break
	}
	if g.label != nil {
		v.Labelled = g.label.MinMember
	}
	if len(g.priorities) > 1 {
		v.Priorities = slices.Sorted(maps.Keys(g.priorities))
	}
	return v, true
}

// Members returns all members of the group, the oldest first.
func (l *Ledger) Members(id ID) []Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return nil
	}
	all := slices.SortedFunc(maps.Values(g.members), func(a, b *member) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	refs := make([]Ref, len(all))
	for i, m := range all {
		refs[i] = m.Ref()
	}
	return refs
}

// Held returns the members that are held back for their group, with why.
func (l *Ledger) Held(id ID) map[Ref]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return nil
	}
	held := map[Ref]string{}
	for _, m := range g.members {
		if m.State != Pending || !m.Ours || m.seated != "" || (g.leader == m && g.block != nil) {
			continue
		}
		if kind, why := m.turn(); kind == Hold {
			held[m.Ref()] = why
		}
	}
	return held
}

// Find returns the reference to a member.
func (l *Ledger) Find(uid UID) (Ref, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Ref{}, false
	}
	return m.Ref(), true
}

// Nodes returns the nodes on which members are bound or hold a seat, with how many.
func (l *Ledger) Nodes(id ID) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return nil
	}
	nodes := map[string]int{}
	for _, m := range g.members {
		switch {
		case m.State == Bound:
			nodes[m.Node]++
		case m.seated != "":
			nodes[m.seated]++
		}
	}
	return nodes
}

// Tally counts the groups by what they do, in words that serve as the values of a metric's label.
func (l *Ledger) Tally() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := map[string]int{"incomplete": 0, "waiting": 0, "unschedulable": 0, "starting": 0, "degraded": 0, "started": 0}
	for _, g := range l.groups {
		switch {
		case g.complete():
			t["started"]++
		case g.started:
			t["degraded"]++
		case g.plan != nil:
			t["starting"]++
		case g.block != nil:
			t["unschedulable"]++
		case g.quorum():
			t["waiting"]++
		default:
			t["incomplete"]++
		}
	}
	return t
}
