package gang

import (
	"maps"
	"time"

	"berth.dev/berth/pkg/obstacle"
)

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
func (l *Ledger) Unreserve(uid UID, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	g, before := m.group, m.stage
	p, node := g.plan, g.plan.node(uid)
	m.move(givesBack)
	switch {
	case before == released:
		return l.comeBack(m, backoff, now)
	case before.waits() && node != "" && !now.Before(p.deadline):
		// The timer of Permit may end a moment before the ledger is asked for plans whose time is over.
		all, ready := len(p.assignments), g.ready(p)
		if before.ready() {
			ready++
		}
		p.drop(uid)
		return l.expire(g, all, ready, backoff, now)
	case node != "":
		m.move(isDenied)
		why := obstacle.Obstacle{Cause: obstacle.ReserveRefused, Group: g.id, Pod: m.Name, Node: node}
		return l.refuse(m, why, backoff, now)
	case before == alone, before == done:
		return Effects{}
	}
	// What it was to take was lost in the meantime.
	m.move(isDenied)
	return l.settle(g, now)
}

// comeBack takes note of a member that was let go and could not be bound. One that was scheduled as an ordinary pod is
// tried again by the scheduling queue itself. One of a plan is activated if the group has started. Otherwise the group
// pauses before it is planned again, if it still needs the member when the others have been bound. While some are, the
// group has lost what this one held: others must not take it meanwhile, or the group may stay bound in part.
func (l *Ledger) comeBack(m *member, backoff Backoff, now time.Time) Effects {
	g := m.group
	switch p := g.plan; {
	case p.node(m.UID) == "" && g.started():
		m.move(isLet)
	case p != nil && p.failure == nil && !g.started():
		g.attempts.fail(backoff, now)
		p.failure = &block{reason: obstacle.Obstacle{Cause: obstacle.NotBound, Group: g.id, Pod: m.Name, Node: m.node}}
	}
	begun := !g.met() && g.hasBegun()
	g.attempts.resumes = begun && !g.started()
	var e Effects
	if begun && m.node != "" {
		e.Lost = []Loss{{Group: g.id, Member: m.Ref(), Node: m.node, Starting: g.attempts.resumes}}
	}
	g.plan.drop(m.UID)
	return merge(e, l.settle(g, now))
}

// hasBegun reports whether members have a node, or are being bound.
func (g *group) hasBegun() bool {
	for _, m := range g.members {
		if m.State == Bound || m.stage == released {
			return true
		}
	}
	return false
}

// Broken records that the node that the plan gives to the member does not take it.
func (l *Ledger) Broken(uid UID, why obstacle.Reason, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil || m.group.plan.node(uid) == "" || m.stage.holds() {
		return Effects{}
	}
	m.move(isDenied)
	return l.refuse(m, why, backoff, now)
}

// refuse takes the member's assignment out of the plan. The group goes on without it if the others are enough. If not,
// the assignments that siblings hold stay, and the member leads the planning of the rest, which leaves this node out
// for its like; unless that has failed too often.
func (l *Ledger) refuse(m *member, why obstacle.Reason, backoff Backoff, now time.Time) Effects {
	g, p := m.group, m.group.plan
	refusal := Refusal{Class: m.Class, Node: p.node(m.UID)}
	again := p.refusals.of[refusal]
	if p.refusals.of == nil {
		p.refusals.of = map[Refusal]bool{}
	}
	p.refusals.of[refusal] = true
	p.drop(m.UID)
	p.refusals.inARow++
	if g.serves(p) {
		return l.settle(g, now)
	}
	g.leader = m
	if again || p.refusals.inARow > maxSetbacks {
		return l.block(g, why, nil, true, backoff, now)
	}
	for uid := range p.assignments {
		if !g.members[uid].stage.holds() {
			p.drop(uid)
		}
	}
	p.open = true
	return l.settle(g, now)
}

// Refused returns the nodes that turned out, while the group's present plan was carried out, not to take members of a
// class.
func (l *Ledger) Refused(id ID) map[Refusal]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.plan == nil {
		return nil
	}
	return maps.Clone(g.plan.refusals.of)
}

// Expire ends the plans whose time is over, lets the next members of large plans into the queue, lets those go that
// wait only for members that the minimum does not need, invites another leader where the one that was invited does not
// come, and ends the wait for evictions that take too long.
func (l *Ledger) Expire(backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e Effects
	for _, g := range l.planned {
		e.Activate = append(e.Activate, g.letMore(now)...)
		if g.attempts.rests && !now.Before(g.attempts.retryAt) {
			g.attempts.rests = false
			e = merge(e, l.settle(g, now))
		}
		switch p := g.plan; {
		case p == nil:
		case !now.Before(p.deadline):
			e = merge(e, l.expire(g, len(p.assignments), g.ready(p), backoff, now))
		case !p.enoughAt.IsZero() && p.flow.done(p) && now.Sub(p.enoughAt) >= stragglersGrace && g.servesReady(p):
			e.Allow = append(e.Allow, l.commit(g, now)...)
			e = merge(e, l.settle(g, now))
		}
	}
	for _, g := range l.evicted {
		if !now.Before(g.eviction.until) {
			l.endEviction(g)
			e = merge(e, l.settle(g, now))
		}
	}
	for id, g := range l.binding {
		if g.plan == nil || len(g.plan.flow.toAllow) == 0 {
			delete(l.binding, id)
		} else {
			e.Allow = append(e.Allow, l.allowMore(g, now)...)
		}
	}
	for id, g := range l.invited {
		if !g.attempts.invited {
			delete(l.invited, id)
		} else if now.Sub(g.attempts.invitedAt) >= patience {
			e = merge(e, l.passOver(g, now))
		}
	}
	return e
}

// expire ends the plan whose time is over; ready of all members were ready.
func (l *Ledger) expire(g *group, all, ready int, backoff Backoff, now time.Time) Effects {
	if !g.plan.open && g.servesReady(g.plan) {
		e := Effects{Allow: l.commit(g, now)}
		return merge(e, l.settle(g, now))
	}
	for uid := range g.plan.assignments {
		m := g.members[uid]
		m.declined = !m.stage.holds()
	}
	why := obstacle.Obstacle{Cause: obstacle.TimedOut, Group: g.id, Have: ready, Need: all, Timeout: g.spec().Timeout}
	return l.block(g, why, nil, false, backoff, now)
}
