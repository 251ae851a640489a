package gang

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/tree"
)

// View is what a group looks like from outside.
type View struct {
	Counts
	// Holding is the number of members that hold an assignment in memory.
	Holding int
	// Priority is the lowest of the members.
	Priority int32
	// Priorities holds those of the members in ascending order, if they differ.
	Priorities []int32
	// Minimum is zero while the group has no specification.
	Minimum Minimum
	// inFlightSince is since when at least one member has been on its way to a node, zero if none is.
	inFlightSince time.Time
	// Started is set while the group is past its first start: members are placed one by one.
	Started bool
	// Degraded is set while a group that had started has lost members and has fewer than Reached, the part of its
	// minimum that was placed before.
	Degraded bool
	Reached  Minimum
	// Reason is why the group did not fit when it was last tried; nil if it was not or is being tried.
	Reason obstacle.Reason
	// Note says why the group is not complete, if the number of members does not tell.
	Note string
	// Any is the oldest member, of those that another scheduler places if there are any.
	Any Ref
	// Undeclared is the minimum by the members' owner or labels, without a PodGroup; 0 if neither says it.
	Undeclared int
}

// Quorum reports whether enough members exist to start.
func (v *View) Quorum() bool { return v.Minimum.Total > 0 && v.quorum(v.Minimum) }

// Plans reports whether there are enough members for a plan that the group still needs.
func (v *View) Plans() bool { return !v.Started && v.Quorum() }

// Met reports whether the minimum is placed.
func (v *View) Met() bool { return v.Minimum.Total > 0 && v.met(v.Minimum) }

// Underway reports whether the group is expected to start in a moment: its members are being created, or it is being
// planned and bound.
func (v *View) Underway() bool { return v.Reason == nil && !v.Started && !v.Met() }

// InFlight is how many members count as on their way to a node when the group is to be evicted as a whole.
func (v *View) InFlight(now time.Time) int {
	if !inFlight(v.inFlightSince, now) {
		return 0
	}
	return max(v.Holding, 1)
}

// View returns what the group looks like, and false if nothing is known of it.
func (l *Ledger) View(id ID) (View, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || isEmpty(g) {
		return View{}, false
	}
	c := &g.census
	v := View{Counts: c.Counts, Holding: g.holding, Priority: c.priority(), inFlightSince: g.eviction.inFlightSince,
		Started: g.started(), Degraded: g.degraded(), Note: g.note}
	v.Roles = maps.Clone(c.Roles)
	if len(c.priorities) > 1 {
		v.Priorities = slices.Sorted(maps.Keys(c.priorities))
	}
	if s := g.spec(); s != nil {
		v.Minimum = s.Minimum
		if v.Degraded {
			v.Reached = g.run.needed(s)
		}
	}
	if g.attempts.block != nil {
		v.Reason = g.attempts.block.reason
	}
	if example := g.example(); example != nil {
		v.Any = example.Ref
	}
	if s := cmp.Or(g.specs[Owner:]...); s != nil {
		v.Undeclared = s.Minimum.Total
	}
	return v, true
}

// Members returns all members of the group, the oldest first.
func (l *Ledger) Members(id ID) (refs []Ref) {
	l.on(id, func(g *group) {
		refs = make([]Ref, 0, len(g.members))
		for _, m := range slices.SortedFunc(maps.Values(g.members), byAge) {
			refs = append(refs, m.Ref)
		}
	})
	return refs
}

// Lacking returns what the group still needs, and the members that can be placed for it, the oldest first. Those that
// have succeeded need no other in their place.
func (l *Ledger) Lacking(id ID) (Minimum, []Member) {
	var d Demand
	l.on(id, func(g *group) {
		if g.spec() != nil {
			d = g.demand()
		}
	})
	return d.Need, d.Members
}

// Begun reports whether members of a part of the group have a node or have succeeded.
func (l *Ledger) Begun(id ID, of *tree.Group) (begun bool) {
	l.on(id, func(g *group) { begun = g.begunIn(of) })
	return begun
}

// Held returns the members that wait for their group and have had no cycle that reported why, with the reason.
func (l *Ledger) Held(id ID) map[Ref]obstacle.Reason {
	held := map[Ref]obstacle.Reason{}
	l.on(id, func(g *group) {
		for _, m := range g.members {
			if !m.mayLead() {
				continue
			}
			switch purpose, why := m.purpose(); {
			case purpose == Wait:
				held[m.Ref] = why
			case purpose == Lead && g.attempts.block != nil && !g.attempts.block.cycle:
				held[m.Ref] = g.attempts.block.reason
			}
		}
	})
	return held
}

// Where returns the node of each member that is bound or holds an assignment.
func (l *Ledger) Where(id ID) map[Ref]string {
	nodes := map[Ref]string{}
	l.on(id, func(g *group) {
		for _, m := range g.members {
			switch {
			case m.State == Bound:
				nodes[m.Ref] = m.Node
			case m.stage.holds():
				nodes[m.Ref] = m.node
			}
		}
	})
	return nodes
}

// Nodes returns the nodes on which members are bound or hold an assignment, with how many.
func (l *Ledger) Nodes(id ID) map[string]int {
	nodes := map[string]int{}
	for _, node := range l.Where(id) {
		nodes[node]++
	}
	return nodes
}

// Refused returns the nodes that have refused members of a class since the present plan was made.
func (l *Ledger) Refused(id ID) (refused map[Refusal]bool) {
	l.on(id, func(g *group) {
		if g.plan != nil {
			refused = maps.Clone(g.plan.refused)
		}
	})
	return refused
}

// Tally counts the groups by state, named as in the metric's label.
func (l *Ledger) Tally() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := map[string]int{"incomplete": 0, "waiting": 0, "unschedulable": 0, "starting": 0, "degraded": 0, "started": 0}
	for _, g := range l.groups {
		switch {
		case isEmpty(g):
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
