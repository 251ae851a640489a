package gang

import (
	"time"

	"berth.dev/berth/pkg/obstacle"
)

// maxDeclined is how many leaders in a row may decline before the group is blocked.
const maxDeclined = 3

// Decline records that the member, whose turn it is to lead, was turned away by a plugin before it could plan. Another
// one leads instead; if several in a row declined, or all, the group is blocked with that reason, and the next attempt
// is led by one that has not declined yet.
func (c *Cycles) Decline(uid UID, why obstacle.Reason, backoff Backoff, now time.Time) Effects {
	return ofMember(c.book, uid, func(m *member) Effects {
		g := m.group
		if kind, _ := m.turn(); kind != Lead {
			return Effects{}
		}
		m.move(isDenied)
		g.attempts.declined++
		if another := g.decline(m); !another || g.attempts.declined == maxDeclined {
			return g.block(why, nil, g.leader == m, backoff, now)
		}
		return g.invite(now)
	})
}

// Block records that the group cannot be placed now, as a scheduling cycle of its leader has found. short holds the
// classes with members that found no node. The group holds nothing afterwards.
func (c *Cycles) Block(id ID, reason obstacle.Reason, short []string, backoff Backoff, now time.Time) Effects {
	return ofGroup(c.book, id, func(g *group) Effects {
		planner := g.attempts.planner
		if planner != nil {
			planner.move(isDenied)
		}
		return g.block(reason, short, planner != nil && planner == g.leader, backoff, now)
	})
}

// Refusal is a node that did not take a member of a class although it was planned.
type Refusal struct{ Class, Node string }

// refusals are what nodes have refused of a plan.
type refusals struct {
	// of holds the nodes that turned out not to take members of a class.
	of map[Refusal]bool
	// inARow counts refusals since a member last reserved.
	inARow int
}

// maxSetbacks is how many assignments in a row may turn out wrong before the group is blocked.
const maxSetbacks = 3

// Unreserve records that the member has given its assignment back. If the ledger did not ask for that, the node has
// turned the member away after all; or, if the member had been let go, it could not be bound. It has to be called, too,
// if the member could not reserve, and activates one that may go on differently.
func (c *Cycles) Unreserve(uid UID, backoff Backoff, now time.Time) Effects {
	return ofMember(c.book, uid, func(m *member) Effects {
		g, before := m.group, m.stage
		p, node := g.plan, g.plan.node(m)
		m.move(givesBack)
		switch {
		case before == released:
			return g.comeBack(m, backoff, now)
		case before.waits() && node != "" && !now.Before(p.deadline):
			// The timer of Permit may end a moment before the ledger is asked for plans whose time is over.
			all, ready := len(p.assignments), p.tallied().ready
			if before.ready() {
				ready++
			}
			p.drop(m)
			return g.expire(all, ready, backoff, now)
		case node != "":
			m.move(isDenied)
			why := obstacle.Obstacle{Cause: obstacle.ReserveRefused, Group: g.id, Pod: m.Name, Node: node}
			return g.refuse(m, why, backoff, now)
		case before == alone, before == done:
			return Effects{}
		}
		// What it was to take was lost in the meantime.
		m.move(isDenied)
		return g.settle(now)
	})
}

// comeBack takes note of a member that was let go and could not be bound. One that was scheduled as an ordinary pod is
// tried again by the scheduling queue itself. One of a plan is activated if the group has started. Otherwise the group
// pauses before it is planned again, if it still needs the member when the others have been bound. While some are, the
// group has lost what this one held: others must not take it meanwhile, or the group may stay bound in part.
func (g *group) comeBack(m *member, backoff Backoff, now time.Time) Effects {
	switch p := g.plan; {
	case p.node(m) == "" && g.started():
		m.move(isLet)
	case p != nil && p.failure == nil && !g.started():
		g.attempts.fail(backoff, now)
		p.failure = &block{reason: obstacle.Obstacle{Cause: obstacle.NotBound, Group: g.id, Pod: m.Name, Node: m.node}}
	}
	begun := !g.met() && g.begun()
	g.attempts.resumes = begun && !g.started()
	var e Effects
	if begun && m.node != "" {
		e.Lost = []Loss{{Group: g.id, Member: m.Ref, Node: m.node, Starting: g.attempts.resumes}}
	}
	g.plan.drop(m)
	return merge(e, g.settle(now))
}

// Broken records that the node that the plan gives to the member does not take it.
func (c *Cycles) Broken(uid UID, why obstacle.Reason, backoff Backoff, now time.Time) Effects {
	return ofMember(c.book, uid, func(m *member) Effects {
		if m.group.plan.node(m) == "" || m.stage.holds() {
			return Effects{}
		}
		m.move(isDenied)
		return m.group.refuse(m, why, backoff, now)
	})
}

// refuse takes the member's assignment out of the plan. The group goes on without it if the others are enough. If not,
// the assignments that siblings hold stay, and the member leads the planning of the rest, which leaves this node out
// for its like; unless that has failed too often.
func (g *group) refuse(m *member, why obstacle.Reason, backoff Backoff, now time.Time) Effects {
	p := g.plan
	refusal := Refusal{Class: m.Class, Node: p.node(m)}
	again := p.refusals.of[refusal]
	if p.refusals.of == nil {
		p.refusals.of = map[Refusal]bool{}
	}
	p.refusals.of[refusal] = true
	p.drop(m)
	p.refusals.inARow++
	if serves(g, p) {
		return g.settle(now)
	}
	g.leader = m
	if again || p.refusals.inARow > maxSetbacks {
		return g.block(why, nil, true, backoff, now)
	}
	for sibling := range p.assignments {
		if !sibling.stage.holds() {
			p.drop(sibling)
		}
	}
	p.open = true
	return g.settle(now)
}

// expire ends the plan whose time is over; ready of all members were ready.
func (g *group) expire(all, ready int, backoff Backoff, now time.Time) Effects {
	if !g.plan.open && servesReady(g, g.plan) {
		e := g.commit(now)
		return merge(e, g.settle(now))
	}
	for m := range g.plan.assignments {
		m.declined = !m.stage.holds()
	}
	why := obstacle.Obstacle{Cause: obstacle.TimedOut, Group: g.id, Have: ready, Need: all, Timeout: g.spec().Timeout}
	return g.block(why, nil, false, backoff, now)
}
