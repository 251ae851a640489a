package gang

import (
	"maps"
	"slices"
	"time"

	"berth.dev/berth/pkg/obstacle"
)

// settle brings a group in line with its members and returns what follows from that. It is the only place that ends a
// plan or activates members that were held.
func (g *group) settle(now time.Time) Effects {
	if g.census.states[Bound] == 0 {
		g.eviction.until = time.Time{}
	}
	e := g.recount(now)
	if g.plan != nil && !g.plan.committed {
		e = merge(e, g.advance(now))
	}
	if p := g.plan; p != nil && p.committed {
		e.Allow = append(e.Allow, p.allowMore(now)...)
	}
	if p := g.plan; p != nil && !p.open && len(p.assignments) == 0 {
		g.plan = nil
		if p.failure != nil && !g.started() {
			g.attempts.block = p.failure
		} else {
			g.attempts.failed = 0
		}
	}
	if g.plan == nil && g.holding == 0 {
		e.Landed = !g.eviction.inFlightSince.IsZero()
		g.eviction.inFlightSince = time.Time{}
	}
	if g.started() || !g.quorum() {
		g.attempts.block, g.attempts.invited = nil, false
	}
	e.Activate = append(e.Activate, g.wake()...)
	g.lists.file(g)
	g.lists.change(g.id)
	return e
}

// recount draws from the census whether the group has started.
func (g *group) recount(now time.Time) (e Effects) {
	switch {
	case running(g):
		g.run.reach(runs)
	case g.run.reach(isOver):
		// What comes now is a new start, also of those that were let into the queue as ordinary pods.
		g.run.reached, g.run.quorumAt = nil, time.Time{}
		g.ground()
	}
	if g.run.quorumAt.IsZero() && g.quorum() {
		g.run.quorumAt = now
	}
	if g.met() {
		if g.run.reach(isMet) && g.plan != nil {
			e.Started, e.Waited = true, now.Sub(g.run.quorumAt)
		}
		g.run.reached = &g.spec().Minimum
	}
	return e
}

// advance commits a plan that is ready, closes one that has become enough without another attempt, and gives up one
// that cannot serve any more.
func (g *group) advance(now time.Time) Effects {
	p := g.plan
	switch {
	case g.spec() == nil:
		return g.release(obstacle.Obstacle{Cause: obstacle.GroupDeleted, Group: g.id})
	case g.started():
		return g.commit(now)
	case serves(g, p):
		p.open = false
	case !p.open:
		return g.release(obstacle.Obstacle{Cause: obstacle.LostMember, Group: g.id, Says: g.spec().Minimum.String()})
	case !g.quorum() || g.lead() == nil:
		return g.release(obstacle.Obstacle{Cause: obstacle.LostMembers, Group: g.id})
	default:
		return Effects{}
	}
	switch ready := p.tallied().ready; {
	case ready == len(p.assignments):
		return g.commit(now)
	case p.enoughAt.IsZero() && servesReady(g, p):
		p.enoughAt = now
	}
	return Effects{}
}

// commit lets the members of the plan go that hold their assignments, and takes the others out of it.
func (g *group) commit(now time.Time) (e Effects) {
	p := g.plan
	p.committed, p.open = true, false
	for _, m := range p.order {
		if !m.stage.holds() {
			p.drop(m)
		}
	}
	for _, m := range p.order {
		if p.node(m) == "" {
			continue
		}
		if m.stage == assigned {
			p.flow.toAllow = append(p.flow.toAllow, m.Ref)
		}
		m.move(isReleased)
	}
	e.Allow = p.allowMore(now)
	return e
}

// release drops the plan and asks back every assignment that was not let go.
func (g *group) release(reason obstacle.Reason) (e Effects) {
	p := g.plan
	g.plan, g.attempts.invited = nil, false
	if p == nil || p.committed {
		return e
	}
	for _, m := range p.order {
		if p.node(m) != "" && m.stage.holds() {
			e.Reject = append(e.Reject, Rejection{Ref: m.Ref, Reason: reason})
		}
	}
	return e
}

// wake returns the members that were held and need not be any more. The leader of a group that has no plan is among
// them only if the group was invited to plan.
func (g *group) wake() []Ref {
	switch p := g.plan; {
	case p != nil && !p.open && !p.committed:
		return g.let(p.letIn()...)
	case g.started():
		return g.let(slices.SortedFunc(maps.Keys(g.atRest), byAge)...)
	case p != nil && p.committed:
	case g.quorum():
		return g.let(g.lead())
	}
	return nil
}

// let lets members into the queue that were held and need not be any more.
func (g *group) let(members ...*member) (refs []Ref) {
	for _, m := range members {
		if m == nil || m.stage != held || !m.Ours {
			continue
		}
		if kind, _ := m.turn(); kind != Hold && (kind != Lead || mayPlan(g)) {
			m.move(isLet)
			refs = append(refs, m.Ref)
		}
	}
	return refs
}
