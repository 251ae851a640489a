package gang

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Evictions is the part of a ledger that asks whether pods may be evicted, and is told which are.
type Evictions struct{ *store }

// longestFlight is how long members on their way to a node keep their group from being evicted as a whole. Without a
// limit, a member that waits for a volume that never comes would protect its group forever.
const longestFlight = 30 * time.Second

// EvictionImpact is what an eviction takes from a group.
type EvictionImpact struct {
	Group ID
	// Whole is set if all members are to go of the Bound ones that were known when the choice was made.
	Whole bool
	Bound int
	// Pods are the members that go.
	Pods []UID
}

// groupEviction is what is being evicted of a group, and what protects it.
type groupEviction struct {
	// inFlightSince is since when at least one member has been on its way to a node, zero if none is.
	inFlightSince time.Time
	// until is how long pending members wait for all bound ones to be evicted, zero if they are not.
	until time.Time
	// alone are members that are evicted without the others, with when they should be gone.
	alone map[UID]time.Time
}

// evicting reports whether the group is being evicted as a whole.
func (e *groupEviction) evicting() bool { return !e.until.IsZero() }

// bindingStarted notes that a member is on its way to a node.
func (e *groupEviction) bindingStarted(now time.Time) {
	if e.inFlightSince.IsZero() {
		e.inFlightSince = now
	}
}

// markAlone notes that the members are evicted without the rest of the group.
func (e *groupEviction) markAlone(pods []UID, until time.Time) {
	if e.alone == nil {
		e.alone = map[UID]time.Time{}
	}
	for _, uid := range pods {
		e.alone[uid] = until
	}
}

func inFlight(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) < longestFlight }

// Evict reports whether the eviction still leaves each group its minimum or nothing. It does not if members were bound,
// lost or sent to nodes since the choice. If it does, pending members of groups that are evicted as a whole wait until
// the bound ones have gone, but not after until: one that took a node meanwhile would be all that is left of its group.
// Members that go without the rest count as lost until then.
func (e *Evictions) Evict(impacts []EvictionImpact, until, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.evict(impacts, until, now)
}

func (e *Evictions) evict(impacts []EvictionImpact, until, now time.Time) bool {
	for i := range impacts {
		if g := e.groups[impacts[i].Group]; g != nil && !toleratesEviction(g, &impacts[i], now) {
			return false
		}
	}
	for i := range impacts {
		switch g := e.groups[impacts[i].Group]; {
		case g == nil:
		case impacts[i].Whole:
			g.eviction.until, g.attempts.invited = until, false
			g.updateBusy()
		default:
			g.eviction.markAlone(impacts[i].Pods, until)
		}
	}
	return true
}

// EvictMember reports whether the member may be evicted without the rest of its group. If so, the group counts it as
// lost until the given time: several that are chosen at the same time may together be more than the group can lose.
func (e *Evictions) EvictMember(uid UID, until, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[uid]
	return m == nil || m.State != Bound ||
		e.evict([]EvictionImpact{{Group: m.group.id, Pods: []UID{uid}}}, until, now)
}

// Surplus reports whether the bound member is one of those among the given pods that its group can lose all at once,
// the least important first.
func (e *Evictions) Surplus(uid UID, among []UID, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[uid]
	if m == nil {
		return true
	}
	g := m.group
	if g.spec() == nil || !g.met() {
		return false
	}
	lost := without(g, nil, now)
	var bound []*member
	for _, other := range among {
		if o := g.members[other]; o != nil && o.State == Bound && g.eviction.alone[other].IsZero() {
			bound = append(bound, o)
		}
	}
	slices.SortFunc(bound, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Created.Compare(a.Created), cmp.Compare(a.UID, b.UID))
	})
	for _, o := range bound {
		lost[o.Role]++
		switch {
		case !g.census.tolerates(g.spec().Minimum, lost):
			lost[o.Role]--
		case o == m:
			return true
		}
	}
	return false
}

// Beginning reports whether members of a group of less than that priority hold a node in memory, or are being bound.
func (e *Evictions) Beginning(below int32) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.groups {
		if g.holding > 0 && g.census.priority() < below {
			return true
		}
	}
	return false
}

// toleratesEviction reports whether what the impact leaves of the group is of use, or nothing.
func toleratesEviction(g *group, t *EvictionImpact, now time.Time) bool {
	if t.Whole {
		return !inFlight(g.eviction.inFlightSince, now) && g.census.Count[Bound] <= t.Bound
	}
	if g.spec() == nil {
		return true
	}
	return g.census.tolerates(g.spec().Minimum, without(g, t.Pods, now))
}

// without counts by role the bound members among the given ones and those that are being evicted.
func without(g *group, pods []UID, now time.Time) map[string]int {
	maps.DeleteFunc(g.eviction.alone, func(uid UID, until time.Time) bool {
		m := g.members[uid]
		return m == nil || m.State != Bound || !now.Before(until)
	})
	lost := map[string]int{}
	lose := func(uid UID) {
		if m := g.members[uid]; m != nil && m.State == Bound {
			lost[m.Role]++
		}
	}
	for uid := range g.eviction.alone {
		lose(uid)
	}
	for _, uid := range pods {
		if _, counted := g.eviction.alone[uid]; !counted {
			lose(uid)
		}
	}
	return lost
}
