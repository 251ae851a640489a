package gang

import (
	"cmp"
	"time"

	"berth.dev/berth/pkg/obstacle"
)

// group is what is known of a gang. Its parts own their state; what follows from several of them is decided here and in
// settle.
type group struct {
	id ID
	specs
	roster
	// run is where the group is in its run, attempts what is known of plans for it.
	run      run
	attempts attempts
	eviction groupEviction
	plan     *plan
	lists    *lists
	// said is what a plugin said last that turned a member away, at saidAt.
	said   string
	saidAt time.Time
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

// specs are what a group asks for, by source.
type specs struct {
	by [sources]*Spec
	// note says why the group is not complete, if the number of members does not tell.
	note string
}

// spec is the specification that counts, or nil.
func (s *specs) spec() *Spec { return cmp.Or(s.by[:]...) }

// age is since when the group exists, by its oldest member, for specifications that do not say it; it does not change.
func age(g *group, now time.Time) time.Time {
	if s := g.by[Owner]; s != nil {
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

// relabel derives the specification that the group's members carry themselves, after m came, changed or went. Where
// they disagree the largest minimum holds: starting too few pods cannot be undone, waiting can. The group is as old as
// the oldest member that was ever seen to say so.
func relabel(m *member, timeout time.Duration, now time.Time) {
	g := m.group
	minimum, before := g.census.largestLabel(), g.by[Label]
	if minimum == 0 {
		g.by[Label] = nil
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
	g.by[Label] = &spec
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
func running(g *group) bool { return g.census.states[Bound] > 0 || g.met() }

// started reports whether the group is past the start of the run that goes on. From then on members are placed one by
// one, because to wait for a minimum again would lock out the replacement of one member forever where another is never
// replaced.
func (g *group) started() bool { return g.run.hadMinimum() && running(g) }

// degraded reports whether the group has started and has lost members since. It has not where the minimum was raised
// and the members for that have yet to be placed.
func (g *group) degraded() bool {
	return g.started() && !g.met() && !g.census.met(g.run.needed(g.spec()))
}

// mayPlan reports whether the group's leader may plan now.
func mayPlan(g *group) bool { return g.attempts.invited || reopened(g) }

// reopened reports whether there is a plan that has lost an assignment, for which others are to be found.
func reopened(g *group) bool { return g.plan != nil && g.plan.open }

// loss is what to say of a member that has lost its node: nothing if the group does not need another in its place, or
// nothing says what it needs.
func loss(m *member) []Loss {
	g := m.group
	if g.spec() == nil || !g.started() || g.met() || m.Node == "" {
		return nil
	}
	lost := Loss{Group: g.id, Member: m.Ref, Node: m.Node}
	if g.asks(g.run.needed(g.spec()).Groups(), m.Role) {
		lost.Role = m.Role
	}
	return []Loss{lost}
}

// leavePlan takes a member out of its group's plan that has been bound, by this scheduler or another one, or is going
// away. If it waits for its siblings it need not do that any longer.
func (m *member) leavePlan() (e Effects) {
	if m.stage.waits() {
		why := obstacle.Obstacle{Cause: obstacle.NoMember, Group: m.group.id, Pod: m.Name}
		e.Reject = []Rejection{{Ref: m.Ref, Reason: why}}
	}
	m.move(isPlaced)
	m.group.plan.drop(m)
	return e
}
