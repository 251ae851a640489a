package gang

import (
	"maps"
	"slices"
	"time"

	"berth.dev/berth/pkg/obstacle"
)

// View is what a group looks like from outside.
type View struct {
	// Minimum is zero while the group has no specification.
	Minimum Minimum
	// Count holds the number of members by state.
	Count [states]int
	// Running is the number of bound members that run.
	Running int
	// Roles holds the members of each role that has a minimum or members.
	Roles map[string]RoleView
	// Holding is the number of members that hold an assignment in memory.
	Holding int
	// InFlightSince is since when members have been on their way to a node, one or the other, zero if none is.
	InFlightSince time.Time
	// Started is set while the group is past its first start: members are placed one by one.
	Started bool
	// Degraded is set while a group that had started has lost members and has fewer than Reached, the part of its
	// minimum that was placed before.
	Degraded bool
	Reached  Minimum
	// Reason is why the group did not fit when it was last tried; nil if it was not or is being tried.
	Reason obstacle.Reason
	// ByCycle is set if a scheduling cycle of the leader found the reason and wrote it to the leader.
	ByCycle bool
	// Note says why the group is not complete, if the number of members does not tell.
	Note string
	// Foreign is the number of members that another scheduler places.
	Foreign int
	// Leader stands for the group in the queue; its UID is empty if there is none.
	Leader Ref
	// Any is the oldest member, of those that another scheduler places if there are any.
	Any Ref
	// Undeclared is the minimum by the members' owner or by what they carry themselves, 0 if neither says it.
	Undeclared int
	// Priority is the lowest of the members.
	Priority int32
	// Priorities holds those of the members, the lowest first, if they differ.
	Priorities []int32
}

// RoleView counts the members of one role.
type RoleView struct{ Minimum, Existing, Settled int }

// Beginning reports whether members of a group of less than that priority hold a node in memory, or are being bound.
func (l *Ledger) Beginning(below int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		if g.holding > 0 && g.census.priority() < below {
			return true
		}
	}
	return false
}

// Settled is the number of members that count as placed.
func (v *View) Settled() int { return v.Count[Bound] + v.Count[Succeeded] }

// Existing is the number of members that count towards the quorum.
func (v *View) Existing() int { return v.Settled() + v.Count[Pending] }

// Quorum reports whether enough members exist to start.
func (v *View) Quorum() bool {
	return v.Minimum.Total > 0 && v.Minimum.MetBy(v.Existing(), func(role string) int { return v.Roles[role].Existing })
}

// Met reports whether the minimum is placed.
func (v *View) Met() bool {
	return v.Minimum.Total > 0 && v.Minimum.MetBy(v.Settled(), func(role string) int { return v.Roles[role].Settled })
}

// Underway reports whether the group is expected to start in a moment: its members are being created, or it is being
// planned and bound.
func (v *View) Underway() bool { return v.Reason == nil && !v.Started && !v.Met() }

// View returns what the group looks like, and false if nothing is known of it.
func (l *Ledger) View(id ID) (View, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.empty() {
		return View{}, false
	}
	c := &g.census
	v := View{Count: c.states, Running: c.running, Holding: g.holding, InFlightSince: g.eviction.inFlightSince,
		Started: g.started(), Degraded: g.degraded(), Note: g.note, Priority: c.priority()}
	var roles map[string]int
	if s := g.spec(); s != nil {
		v.Minimum, roles = s.Minimum, s.Minimum.Roles
		if v.Degraded {
			v.Reached = g.needed()
		}
	}
	for _, role := range slices.Concat(slices.Collect(maps.Keys(roles)), slices.Collect(maps.Keys(c.roles))) {
		if v.Roles == nil {
			v.Roles = map[string]RoleView{}
		}
		v.Roles[role] = RoleView{Minimum: roles[role], Existing: c.existingIn(role), Settled: c.settledIn(role)}
	}
	if g.attempts.block != nil {
		v.Reason, v.ByCycle = g.attempts.block.reason, g.attempts.block.cycle
	}
	if g.leader != nil {
		v.Leader = g.leader.Ref()
	}
	var example *member
	for _, m := range g.members {
		if example == nil || (m.Ours == example.Ours && m.before(example)) || (!m.Ours && example.Ours) {
			example = m
		}
		if !m.Ours && m.State == Pending {
			v.Foreign++
		}
	}
	if example != nil {
		v.Any = example.Ref()
	}
	for _, s := range g.specs[Owner:] {
		if s != nil {
			v.Undeclared = s.Minimum.Total
			break
		}
	}
	if len(c.priorities) > 1 {
		v.Priorities = slices.Sorted(maps.Keys(c.priorities))
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
	all := slices.SortedFunc(maps.Values(g.members), byAge)
	refs := make([]Ref, len(all))
	for i, m := range all {
		refs[i] = m.Ref()
	}
	return refs
}

// Held returns the members that are held for their group and have not been told why by a cycle of their own, with why.
func (l *Ledger) Held(id ID) map[Ref]obstacle.Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return nil
	}
	held := map[Ref]obstacle.Reason{}
	for _, m := range g.members {
		if m.State != Pending || !m.Ours || m.stage.holds() {
			continue
		}
		switch kind, why := m.turn(); {
		case kind == Hold:
			held[m.Ref()] = why
		case kind == Lead && g.attempts.block != nil && !g.attempts.block.cycle:
			held[m.Ref()] = g.attempts.block.reason
		}
	}
	return held
}

// Nodes returns the nodes on which members are bound or hold an assignment, with how many.
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
		case m.stage.holds():
			nodes[m.node]++
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
		case g.empty():
		case g.degraded():
			t["degraded"]++
		case g.started():
			t["started"]++
		case g.plan != nil:
			t["starting"]++
		case g.attempts.block != nil:
			t["unschedulable"]++
		case g.quorum():
			t["waiting"]++
		default:
			t["incomplete"]++
		}
	}
	return t
}

// Stragglers returns the pending members of groups that have started and have fewer than their minimum, by group.
func (l *Ledger) Stragglers() map[ID][]Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	refs := map[ID][]Ref{}
	for _, g := range l.degraded {
		for _, m := range g.members {
			if m.mayLead() {
				refs[g.id] = append(refs[g.id], m.Ref())
			}
		}
	}
	return refs
}
