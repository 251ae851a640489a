package gang

import (
	"time"

	"berth.dev/berth/pkg/obstacle"
)

// settle brings a group in line with its members and returns what follows from that. It is the only place that ends a
// plan or activates members that were held.
func (l *Ledger) settle(g *group, now time.Time) Effects {
	if g.evicting() && g.census.states[Bound] == 0 {
		l.endEviction(g)
	}
	e := g.recount(now)
	if g.plan != nil && !g.plan.committed {
		e = merge(e, l.advance(g, now))
	}
	if p := g.plan; p != nil && p.committed {
		e.Allow = append(e.Allow, l.allowMore(g, now)...)
	}
	if p := g.plan; p != nil && !p.open && len(p.assignments) == 0 {
		g.plan = nil
		delete(l.planned, g.id)
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
	if g.isComing() {
		l.coming[g.id] = g
	}
	if g.degraded() {
		l.degraded[g.id] = g
	} else {
		delete(l.degraded, g.id)
	}
	e.Activate = append(e.Activate, g.wake()...)
	l.changed(g.id)
	return e
}

// recount draws from the census whether the group has started.
func (g *group) recount(now time.Time) Effects {
	var e Effects
	switch {
	case g.running():
		g.run.reach(runs)
	case g.run.reach(isOver):
		// What comes now is a new start, also of those that were let into the queue as ordinary pods.
		g.run.reached, g.run.quorumAt = nil, time.Time{}
		for _, m := range g.members {
			if m.stage == alone {
				m.move(isDenied)
			}
		}
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
func (l *Ledger) advance(g *group, now time.Time) Effects {
	p := g.plan
	switch {
	case g.spec() == nil:
		return l.release(g, obstacle.Obstacle{Cause: obstacle.GroupDeleted, Group: g.id})
	case g.started():
		return Effects{Allow: l.commit(g, now)}
	case g.serves(p):
		p.open = false
	case !p.open:
		return l.release(g, obstacle.Obstacle{Cause: obstacle.LostMember, Group: g.id, Says: g.spec().Minimum.String()})
	case !g.quorum() || g.lead() == nil:
		return l.release(g, obstacle.Obstacle{Cause: obstacle.LostMembers, Group: g.id})
	default:
		return Effects{}
	}
	switch ready := g.ready(p); {
	case ready == len(p.assignments):
		return Effects{Allow: l.commit(g, now)}
	case p.enoughAt.IsZero() && g.servesReady(p):
		p.enoughAt = now
	}
	return Effects{}
}

// commit lets the members of the plan go that hold their assignments, and takes the others out of it. It returns those
// that have to be told now.
func (l *Ledger) commit(g *group, now time.Time) []Ref {
	p := g.plan
	p.committed, p.open = true, false
	delete(l.planned, g.id)
	for _, uid := range p.order {
		if p.node(uid) == "" {
			continue
		}
		m := g.members[uid]
		switch {
		case !m.stage.holds():
			p.drop(uid)
		case m.stage == assigned:
			p.flow.toAllow = append(p.flow.toAllow, m.Ref())
		}
		m.move(isReleased)
	}
	return l.allowMore(g, now)
}

// release drops the plan and asks back every assignment that was not let go.
func (l *Ledger) release(g *group, reason obstacle.Reason) Effects {
	var e Effects
	p := g.plan
	g.plan, g.attempts.invited = nil, false
	delete(l.planned, g.id)
	if p == nil || p.committed {
		return e
	}
	for _, uid := range p.order {
		if p.node(uid) != "" && g.members[uid].stage.holds() {
			e.Reject = append(e.Reject, Rejection{Ref: g.members[uid].Ref(), Reason: reason})
		}
	}
	return e
}

// wake returns the members that were held and need not be any more. The leader of a group that has no plan is among
// them only if the group was invited to plan.
func (g *group) wake() []Ref {
	if g.spec() == nil {
		return nil
	}
	var refs []Ref
	take := g.letting(&refs)
	switch p := g.plan; {
	case p != nil && !p.open && !p.committed:
		if p.ordered {
			g.letInOrder(take)
		} else if p.flow.next == 0 {
			g.letNext(take)
		}
	case g.started():
		for m := range g.atRest {
			take(m)
		}
	case p != nil && p.committed:
	case g.quorum():
		take(g.lead())
	}
	return refs
}

// rest notes whether the member is kept out of the queue.
func (g *group) rest(m *member, rests bool) {
	switch {
	case !rests:
		delete(g.atRest, m)
	case g.atRest == nil:
		g.atRest = map[*member]bool{m: true}
	default:
		g.atRest[m] = true
	}
}

// mayLet reports whether the member was held and need not be any more.
func (g *group) mayLet(m *member) bool {
	if m == nil || m.stage != held || !m.Ours {
		return false
	}
	kind, _ := m.turn()
	return kind != Hold && (kind != Lead || g.mayPlan())
}

// mayPlan reports whether the group's leader may plan now.
func (g *group) mayPlan() bool { return g.attempts.invited || (g.reopened() && !g.attempts.rests) }

// reopened reports whether there is a plan that has lost an assignment, for which others are to be found.
func (g *group) reopened() bool { return g.plan != nil && g.plan.open }
