package gang

import (
	"maps"
	"slices"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
)

// settle brings a group in line with its members. It is the only place that ends a plan or activates members that were
// kept out of the queue.
func (g *group) settle(now time.Time) {
	if g.census.Count[Bound] == 0 {
		g.eviction.until = time.Time{}
	}
	g.updateRun(now)
	if g.plan != nil && g.plan.progress != committed {
		g.advance(now)
	}
	if g.plan != nil && g.plan.progress == committed {
		g.allowMore(now)
	}
	if p := g.plan; p != nil && p.progress != replanning && len(p.assignments) == 0 {
		g.plan = nil
		if p.failure != nil && !g.started() {
			g.attempts.block = p.failure
		} else {
			g.attempts.failed = 0
		}
	}
	if g.plan == nil && g.holding == 0 {
		e := &g.store.effects
		e.Landed = e.Landed || !g.eviction.inFlightSince.IsZero()
		g.eviction.inFlightSince = time.Time{}
	}
	if g.started() || !g.quorum() {
		g.attempts.block, g.attempts.invited = nil, false
	}
	g.wake()
	g.updateBusy()
	g.store.change(g.id)
}

// updateRun finds out from the census whether the group has started.
func (g *group) updateRun(now time.Time) {
	switch {
	case running(g):
		g.run.reach(runs)
	case g.run.reach(isOver):
		// The members begin a new start, also those that were let into the queue as ordinary pods.
		g.run.reached, g.run.quorumAt = nil, time.Time{}
		g.stopAlone()
	}
	if g.run.quorumAt.IsZero() && g.quorum() {
		g.run.quorumAt = now
	}
	if g.met() {
		if g.run.reach(isMet) && g.plan != nil {
			g.store.effects.Started, g.store.effects.Waited = true, now.Sub(g.run.quorumAt)
		}
		g.run.reached = &g.spec().Minimum
	}
}

// advance commits a plan that is ready, closes one that has become enough without another attempt, and gives up one
// that cannot serve any more.
func (g *group) advance(now time.Time) {
	p := g.plan
	switch {
	case g.spec() == nil:
		g.release(obstacle.Obstacle{Cause: obstacle.GroupDeleted, Group: g.id})
	case g.started():
		g.commit()
	case serves(g, p):
		p.progress = reserving
		switch {
		case p.ready.total == len(p.assignments):
			g.commit()
		case p.flow.enoughAt.IsZero() && servesReady(g, p):
			p.flow.enoughAt = now
		}
	case p.progress != replanning:
		g.release(obstacle.Obstacle{Cause: obstacle.LostMember, Group: g.id, Detail: g.spec().Minimum.String()})
	case !g.quorum() || g.lead() == nil:
		g.release(obstacle.Obstacle{Cause: obstacle.LostMembers, Group: g.id})
	}
}

// commit lets the members of the plan go that hold their assignments, and takes the others out of it.
func (g *group) commit() {
	p := g.plan
	p.progress = committed
	for _, m := range p.order {
		switch {
		case !m.stage.holds():
			p.drop(m)
		case p.node(m) != "":
			if m.stage == assigned {
				p.flow.toAllow = append(p.flow.toAllow, m.Ref)
			}
			m.move(isReleased)
		}
	}
}

// allowMore lets the next members of the plan go.
func (g *group) allowMore(now time.Time) {
	g.store.effects.Allow = append(g.store.effects.Allow, g.plan.allowMore(now)...)
}

// release drops the plan and asks back every assignment that was not let go.
func (g *group) release(reason obstacle.Reason) {
	p := g.plan
	g.plan, g.attempts.invited = nil, false
	if p == nil || p.progress == committed {
		return
	}
	for _, m := range p.order {
		if p.node(m) != "" && m.stage.holds() {
			g.reject(m, reason)
		}
	}
}

// reject asks the member's assignment back.
func (g *group) reject(m *member, reason obstacle.Reason) {
	g.store.effects.Reject = append(g.store.effects.Reject, Rejection{Ref: m.Ref, Reason: reason})
}

// wake lets the members in that were kept out of the queue and need not be any more. The leader of a group that has no
// plan is among them only if the group was invited to plan.
func (g *group) wake() {
	switch p := g.plan; {
	case p != nil && p.progress == reserving:
		g.activate(p.toQueue()...)
	case g.started():
		g.activate(slices.SortedFunc(maps.Keys(g.unqueued), byAge)...)
	case p != nil && p.progress == committed:
	case g.quorum():
		g.activate(g.lead())
	}
}

// activate lets members into the queue that were kept out of it and need not be any more.
func (g *group) activate(members ...*member) {
	for _, m := range members {
		if m == nil || m.stage != unqueued || !m.Ours {
			continue
		}
		if purpose, _ := m.purpose(); purpose != Wait && (purpose != Lead || mayPlan(g)) {
			m.move(isLet)
			g.store.effects.Activate = append(g.store.effects.Activate, m.Ref)
		}
	}
}
