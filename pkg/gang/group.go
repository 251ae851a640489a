package gang

import (
	"cmp"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/tree"
)

// group is what is known of a gang. Its parts own their state; what follows from several of them is decided here and in
// settle.
type group struct {
	id    ID
	store *store
	// specs is what the group asks for, by source, note why it is not complete, if the number of members does not tell.
	specs [sources]*Spec
	note  string
	roster
	// run is where the group is in its run, attempts what is known of plans for it.
	run      run
	attempts attempts
	eviction groupEviction
	plan     *plan
	// rejection is the last message of a plugin that turned a member away, at rejectedAt.
	rejection  string
	rejectedAt time.Time
}

// Source is where a group's specification comes from. Where several speak, the first counts.
type Source int

// The sources of a specification, in order of precedence.
const (
	// Object is a PodGroup.
	Object Source = iota
	// Owner is the controller that creates the members.
	Owner
	// Label is what the members carry themselves.
	Label
	sources
)

// spec is the specification that counts, or nil.
func (g *group) spec() *Spec { return cmp.Or(g.specs[:]...) }

// age is the creation of the group's oldest member, for specifications without a time of creation. It does not change.
func age(g *group, now time.Time) time.Time {
	if s := g.specs[Owner]; s != nil {
		return s.Created
	}
	oldest := now
	for _, m := range g.members {
		if m.Created.Before(oldest) {
			oldest = m.Created
		}
	}
	return oldest
}

// updateLabelSpec derives the specification that the group's members carry themselves, after m came, changed or went.
// Where they disagree the largest minimum counts: starting too few pods cannot be undone, waiting can. The group is as
// old as its oldest member with a label that was ever seen.
func updateLabelSpec(m *member, timeout time.Duration, now time.Time) {
	g := m.group
	minimum, before := g.census.largestLabel(), g.specs[Label]
	if minimum == 0 {
		g.specs[Label] = nil
		return
	}
	spec := Spec{Minimum: Minimum{Total: minimum}, UID: UID(g.id.String()), Timeout: timeout}
	if before != nil {
		spec.Created = before.Created
	}
	if before == nil || (m.Minimum > 0 && m.Created.Before(spec.Created)) {
		spec.Created = m.Created
	}
	if before == nil || before.Minimum.Total != minimum {
		g.attempts.unblock(now)
	}
	g.specs[Label] = &spec
}

// isEmpty reports whether the group has neither members nor a specification: at most its start is remembered.
func isEmpty(g *group) bool { return len(g.members) == 0 && g.spec() == nil }

// met reports whether the minimum is placed.
func (g *group) met() bool { s := g.spec(); return s != nil && g.census.met(s.Minimum) }

// quorum reports whether enough members exist for a plan.
func (g *group) quorum() bool { return g.spec() != nil && g.census.quorum(g.spec().Minimum) }

// running reports whether a run of the group goes on: a member has a node, or enough have succeeded that the minimum
// needs no more. What else has ended is left over from a run that is over: a controller that is suspended and resumed,
// or all of whose pods have failed, starts whole again.
func running(g *group) bool { return g.census.Count[Bound] > 0 || g.met() }

// started reports whether the group is past the start of its present run. From then on members are placed one by one:
// if they waited for a minimum again, one lost member that is never replaced would keep out the replacements of others
// forever.
func (g *group) started() bool { return g.run.hadMinimum() && running(g) }

// degraded reports whether the group has started and has lost members since. It has not where the minimum was raised
// and the members for that have yet to be placed.
func (g *group) degraded() bool {
	return g.started() && !g.met() && !g.census.met(g.run.needed(g.spec()))
}

// mayPlan reports whether the group's leader may plan now: it was invited, or there is a plan that has lost an
// assignment, for which others are to be found.
func mayPlan(g *group) bool {
	return g.attempts.invited || g.plan != nil && g.plan.progress == replanning
}

// updateBusy puts the group among the busy ones, if it is about to take capacity, has fewer members than its minimum,
// or is being evicted as a whole.
func (g *group) updateBusy() {
	busy := g.plan != nil || g.attempts.invited || g.degraded() || g.eviction.evicting()
	include(g.store.busy, g.id, g, busy)
}

// include puts the value into the list, or takes it out if it does not belong there.
func include[K comparable, V any](list map[K]V, key K, value V, belongs bool) {
	if belongs {
		list[key] = value
	} else {
		delete(list, key)
	}
}

// count adds the member to the numbers of the group and its plan, by one, or takes it out, by minus one.
func (g *group) count(m *member, by int) {
	g.census.count(&m.Member, by)
	if g.plan.node(m) != "" {
		g.plan.count(m, by)
	}
}

// recordLoss reports that a member has lost its node, if the group is known to need another in its place.
func (g *group) recordLoss(m *member) {
	if g.spec() == nil || !g.started() || g.met() || m.Node == "" {
		return
	}
	loss := Loss{Group: g.id, Member: m.Ref, Node: m.Node}
	if g.asks(g.run.needed(g.spec()).Groups(), m.Role) {
		loss.Role = m.Role
	}
	g.store.effects.Lost = append(g.store.effects.Lost, loss)
}

// leavePlan takes a member out of its group's plan that has been bound, by this scheduler or another one, or is going
// away. If it waits for its siblings it need not do that any longer.
func (m *member) leavePlan() {
	if m.stage.waits() {
		m.group.reject(m, obstacle.Obstacle{Cause: obstacle.NoMember, Group: m.group.id, Pod: m.Name})
	}
	m.move(isPlaced)
	m.group.plan.drop(m)
}

// lacking returns the part of the group for which the member has to wait, nil if it need not: the group, or a group
// within it that the member is in and that has begun, lacks members of other roles. Capacity that becomes free is for
// those, or the gang would run with too many of one role and none of another.
func (g *group) lacking(m *member) *tree.Group {
	need := g.run.needed(g.spec())
	if left := need.Without(g.census.Settled(), g.census.SettledIn); left.Total > left.Groups().Members() {
		return nil // any member is missing
	}
	of := need.Groups()
	for of.Met(g.census.SettledIn) {
		if of = within(of, m.Role); of == nil || !g.begunIn(of) {
			return nil
		}
	}
	if g.asks(of, m.Role) {
		return nil
	}
	return of
}

// asks reports whether the part of the group needs another member with the role.
func (g *group) asks(of *tree.Group, role string) bool {
	for of != nil && !of.Met(g.census.SettledIn) {
		if g.census.SettledIn(role) < of.Roles[role] {
			return true
		}
		of = within(of, role)
	}
	return false
}

// begunIn reports whether members of the part of the group have a node.
func (g *group) begunIn(of *tree.Group) bool {
	for role := range g.census.Roles {
		if g.census.SettledIn(role) > 0 && of.Has(role) {
			return true
		}
	}
	return false
}

// within returns the part of the group that members with the role are in, nil if none is.
func within(of *tree.Group, role string) *tree.Group {
	for i := range of.Groups {
		if of.Groups[i].Has(role) {
			return &of.Groups[i]
		}
	}
	return nil
}
