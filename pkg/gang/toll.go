package gang

import (
	"maps"
	"time"
)

// longestFlight is how long members on their way to a node keep their group from being evicted as a whole. Some wait for volumes that
// are never provided, which must not make their group safe from eviction.
const longestFlight = 30 * time.Second

// Toll is what an eviction takes from a group.
type Toll struct {
	Group ID
	// Whole is set if all members are to go of the Bound ones that were known when the choice was made.
	Whole bool
	Bound int
	// Roles counts the pods that go, by their role, which may be empty.
	Roles map[string]int
}

// Evict reports whether the eviction still leaves each group its minimum or nothing, and if so, has the pending members of groups
// that go as a whole wait until the bound ones have gone, though not after until: one that took a place meanwhile would be all that is
// left of its group. The choice is out of date if a member is on its way to a node, has one that it had not, or is lost.
func (l *Ledger) Evict(tolls []Toll, until, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range tolls {
		if g := l.groups[tolls[i].Group]; g != nil && !g.bears(&tolls[i], now) {
			return false
		}
	}
	for i := range tolls {
		if g := l.groups[tolls[i].Group]; g != nil && tolls[i].Whole {
			g.evictedUntil, g.invited = until, false
			l.evicted[g.id] = g
			delete(l.invited, g.id)
		}
	}
	return true
}

// bears reports whether what the toll leaves of the group is of use, or nothing.
func (g *group) bears(t *Toll, now time.Time) bool {
	if t.Whole {
		return !inFlight(g.inFlightSince, now) && g.census.states[Bound] <= t.Bound
	}
	if g.spec() == nil {
		return true
	}
	gone, roles := 0, maps.Clone(t.Roles)
	for role, n := range roles {
		gone -= n
		roles[role] = -n
	}
	return g.metWith(gone, roles)
}

// takeOff notes that a member is on its way to a node.
func (g *group) takeOff(now time.Time) {
	if g.inFlightSince.IsZero() {
		g.inFlightSince = now
	}
}

func inFlight(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) < longestFlight }

// InFlight is how many members count as on their way to a node when the group is to be evicted as a whole.
func (v *View) InFlight(now time.Time) int {
	if !inFlight(v.InFlightSince, now) {
		return 0
	}
	return max(v.Holding, 1)
}

// goes reports whether the group is being evicted as a whole.
func (g *group) goes() bool { return !g.evictedUntil.IsZero() }

// stay ends the wait of the pending members of a group of which all bound ones have gone, or should have by now.
func (l *Ledger) stay(g *group) {
	g.evictedUntil = time.Time{}
	delete(l.evicted, g.id)
}
