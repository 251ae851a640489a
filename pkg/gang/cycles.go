package gang

import (
	"slices"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
)

// Cycles is the part of a ledger that the scheduling cycles of members ask and tell.
type Cycles struct{ *store }

// MayEnter reports whether the pod may enter the scheduling queue, and why not. It changes nothing: the pod may be in
// its cycle.
func (c *Cycles) MayEnter(uid UID) (ok bool, why obstacle.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[uid].mayEnter()
}

// Admit is MayEnter for a pod that then does. The Key of one that was admitted is frozen.
func (c *Cycles) Admit(uid UID) (ok bool, why obstacle.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[uid]
	if ok, why = m.mayEnter(); ok {
		m.move(isLet)
		m.freeze()
	} else if m != nil {
		m.move(isDenied)
	}
	return ok, why
}

// mayEnter is MayEnter for a member, nil for a pod that is not known.
func (m *member) mayEnter() (ok bool, why obstacle.Reason) {
	if m == nil {
		return false, obstacle.Obstacle{Cause: obstacle.Unknown}
	}
	purpose, why := m.purpose()
	if purpose == Lead && !mayPlan(m.group) {
		// Only an invitation lets it in, not a retry by the queue.
		return false, uninvited(m.group)
	}
	return purpose != Wait, why
}

// Key returns the frozen place in the queue of an admitted pod.
func (c *Cycles) Key(uid UID) (k Key, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[uid]; m != nil {
		k, ok = m.key, m.keyed
	}
	return k, ok
}

// Of tells a pod at the head of the queue what its cycle is for.
func (c *Cycles) Of(uid UID) Cycle {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[uid]
	if m == nil {
		return Cycle{Purpose: Wait, Why: obstacle.Obstacle{Cause: obstacle.Unknown}}
	}
	g := m.group
	if g.attempts.invited && m.stage == queued && m.mayLead() {
		// Another may have been invited since, but this one is here first.
		g.leader, m.declined = m, false
	}
	purpose, why := m.purpose()
	if purpose == Lead && !mayPlan(g) && (g.attempts.planner != m || m.stage != unqueued) {
		// The invitation was taken back while the member was in the queue. A leader that asks again in the cycle that has
		// found that the group does not fit still leads.
		purpose, why = Wait, uninvited(g)
	}
	cycle := Cycle{Purpose: purpose, Why: why}
	switch purpose {
	case Wait:
		m.move(isDenied)
	case Alone:
		m.move(isLet)
		m.move(goesAlone)
	case Follow:
		cycle.Node = g.plan.node(m)
	case Lead:
		g.attempts.planner = m
		// No other leader is invited in its place.
		g.attempts.came = true
		cycle.Demand = g.demand()
	}
	return cycle
}

// Propose makes the proposal the plan of the group that leader leads. It reports whether the proposal still serves,
// because members may have come and gone while it was made, and whether the leader can proceed in this cycle: it has an
// assignment, and no other member has to reserve before it.
func (c *Cycles) Propose(leader UID, proposal Proposal, now time.Time) (e Effects, serving, proceed bool) {
	e = c.onMember(leader, func(m *member) {
		g := m.group
		if purpose, _ := m.purpose(); purpose == Lead {
			p := newPlan(g.plan, len(proposal.Assignments), proposal.Ordered, now.Add(g.spec().Timeout))
			for _, a := range proposal.Assignments {
				if s := g.members[a.UID]; s != nil && s.State == Pending && !s.stage.holds() {
					p.add(s, a)
				}
			}
			if serving = serves(g, p); serving {
				g.plan = p
				g.eviction.bindingStarted(now)
				g.attempts.block, g.attempts.invited, g.attempts.declined = nil, false, 0
				g.run.reach(isPlanned)
				g.clearDeclined()
				proceed = p.node(m) != "" && p.mayReserve(m)
			}
		}
		if proceed {
			m.move(isLet)
		} else {
			m.move(isDenied)
		}
		g.settle(now)
	})
	return e, serving, proceed
}

// Decline records that the member, which was to lead, was turned away by a plugin before it could plan. Another
// one leads instead; if several in a row declined, or all, the group is blocked with that reason, and the next attempt
// is led by one that has not declined yet.
func (c *Cycles) Decline(uid UID, why obstacle.Reason, backoff Backoff, now time.Time) Effects {
	return c.onMember(uid, func(m *member) {
		g := m.group
		if purpose, _ := m.purpose(); purpose != Lead {
			return
		}
		m.move(isDenied)
		g.attempts.declined++
		if another := g.decline(m); !another || g.attempts.declined == maxDeclined {
			g.block(why, nil, g.leader == m, backoff, now)
		} else {
			g.invite(now)
		}
	})
}

// Block records that the group cannot be placed now, as a scheduling cycle of its leader has found. short holds the
// classes with members that found no node. The group holds nothing afterwards.
func (c *Cycles) Block(id ID, reason obstacle.Reason, short []string, backoff Backoff, now time.Time) Effects {
	return c.on(id, func(g *group) {
		planner := g.attempts.planner
		if planner != nil {
			planner.move(isDenied)
		}
		g.block(reason, short, planner != nil && planner == g.leader, backoff, now)
	})
}

// Reserve records that the member holds an assignment in memory. It reports whether the plan gives it that node, or the
// member needs no plan. If not, the caller must call Unreserve.
func (c *Cycles) Reserve(uid UID, node string, now time.Time) (ok bool) {
	c.onMember(uid, func(m *member) {
		switch p := m.group.plan; {
		case p.node(m) == node && node != "":
			if p.assignments[m].First {
				m.move(reservesFirst)
			} else {
				m.move(reserves)
			}
			p.setbacks = 0
		case p.node(m) == "" && m.stage == alone:
			m.move(reserves)
		default:
			m.move(isDenied)
			return
		}
		m.node, ok = node, true
		m.group.eviction.bindingStarted(now)
		c.change(m.group.id)
	})
	return ok
}

// Permit says how a member goes on that only its siblings can keep from being bound: it may be bound now (wait is
// zero), waits for them for at most wait, or has lost its assignment (ok is false). If siblings depend on it, first is
// set: it proceeds, and waits after Prepared.
func (c *Cycles) Permit(uid UID, now time.Time) (e Effects, wait time.Duration, first, ok bool) {
	e = c.onMember(uid, func(m *member) {
		if first = m.stage == preparing; first {
			ok = m.group.plan.node(m) != ""
			return
		}
		m.move(isPermitted)
		wait, ok = m.await(now)
	})
	return e, wait, first, ok
}

// Prepared records that what siblings of the member depend on has been written. It returns what Permit does.
func (c *Cycles) Prepared(uid UID, now time.Time) (e Effects, wait time.Duration, ok bool) {
	e = c.onMember(uid, func(m *member) {
		m.move(isPrepared)
		wait, ok = m.await(now)
	})
	return e, wait, ok
}

// await settles the group and says how a member that holds an assignment goes on.
func (m *member) await(now time.Time) (wait time.Duration, ok bool) {
	g, e := m.group, &m.group.store.effects
	itself := func(r Ref) bool { return r.UID == m.UID }
	if m.stage.waits() && g.plan.node(m) != "" {
		g.settle(now)
		e.Allow = slices.DeleteFunc(e.Allow, itself)
		if p := g.plan; p != nil && m.stage == released {
			p.flow.toAllow = slices.DeleteFunc(p.flow.toAllow, itself)
		}
		e.Reject = slices.DeleteFunc(e.Reject, func(r Rejection) bool { return itself(r.Ref) })
	}
	switch {
	case m.stage == released:
		return 0, true
	case m.stage.waits() && g.plan.node(m) != "":
		return max(g.plan.deadline.Sub(now), time.Millisecond), true
	}
	return 0, false
}

// Unreserve records that the member has given its assignment back, or could not reserve. If the ledger did not ask for
// that, the node has refused the member; or, if the member had been let go, it could not be bound.
func (c *Cycles) Unreserve(uid UID, backoff Backoff, now time.Time) Effects {
	return c.onMember(uid, func(m *member) {
		g, before := m.group, m.stage
		p, node := g.plan, g.plan.node(m)
		m.move(givesBack)
		switch {
		case before == released:
			g.bindingFailed(m, backoff, now)
		case before.waits() && node != "" && !now.Before(p.deadline):
			// The timer of Permit may end a moment before the ledger is asked for plans whose time is over.
			all, ready := len(p.assignments), p.ready.total
			if before.ready() {
				ready++
			}
			p.drop(m)
			g.planExpired(all, ready, backoff, now)
		case node != "":
			m.move(isDenied)
			why := obstacle.Obstacle{Cause: obstacle.ReserveRefused, Group: g.id, Pod: m.Name, Node: node}
			g.refuse(m, why, backoff, now)
		case before != alone && before != done:
			// Its assignment was lost in the meantime.
			m.move(isDenied)
			g.settle(now)
		}
	})
}

// Broken records that the node that the plan gives to the member does not take it.
func (c *Cycles) Broken(uid UID, why obstacle.Reason, backoff Backoff, now time.Time) Effects {
	return c.onMember(uid, func(m *member) {
		if m.group.plan.node(m) != "" && !m.stage.holds() {
			m.move(isDenied)
			m.group.refuse(m, why, backoff, now)
		}
	})
}

// Standing is where a member is on its way to a node.
type Standing struct {
	// Alone is set if it is being scheduled as an ordinary pod.
	Alone bool
	// Reserved is set if it holds an assignment of a plan and Permit is still to be asked whether it may be bound.
	Reserved bool
	// Holds is set if it holds an assignment in memory, Allowed if it has been let go.
	Holds, Allowed bool
	// Settled is set if it holds an assignment or needs none.
	Settled bool
	// Blocked is set if its group did not fit when it was last tried, and is not being tried again.
	Blocked bool
	// Deadline is until when it may wait for its siblings, zero if there is no plan.
	Deadline time.Time
}

// Standing returns where the member is; the zero value for one that is not known.
func (c *Cycles) Standing(uid UID) (s Standing) {
	c.onMember(uid, func(m *member) {
		a, p := &m.group.attempts, m.group.plan
		s = Standing{Alone: m.stage == alone, Reserved: m.stage == reserved, Holds: m.stage.holds(),
			Settled: m.stage.holds() || m.State != Pending, Allowed: m.stage == released,
			Blocked: a.block != nil && !a.invited}
		if p != nil {
			s.Deadline = p.deadline
		}
	})
	return s
}

// Patience is how much longer the member may wait.
func (s *Standing) Patience(now time.Time) time.Duration {
	return max(s.Deadline.Sub(now), time.Millisecond)
}
