package gang

import (
	"slices"
	"time"
)

// Propose makes the proposal the plan of the group that leader leads, and reports whether it still serves, as members
// may have come and gone while it was made, and whether the leader can go on in this very cycle: it has an assignment,
// and no other member has to reserve before it.
func (l *Ledger) Propose(leader UID, proposal Proposal, now time.Time) (e Effects, serves, proceed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[leader]
	if m == nil {
		return Effects{}, false, false
	}
	g := m.group
	if kind, _ := m.turn(); kind != Lead {
		m.move(isDenied)
		return l.settle(g, now), false, false
	}
	p := &plan{assignments: make(map[UID]Assignment, len(proposal.Assignments)), ordered: proposal.Ordered,
		deadline: now.Add(g.spec().Timeout)}
	if old := g.plan; old != nil {
		p.deadline, p.refusals, p.ordered = old.deadline, old.refusals, p.ordered || old.ordered
		for _, uid := range old.order {
			if a, kept := old.assignments[uid]; kept {
				p.order, p.assignments[uid] = append(p.order, uid), a
			}
		}
	}
	for _, a := range proposal.Assignments {
		if s := g.members[a.UID]; s != nil && s.State == Pending && !s.stage.holds() {
			p.order, p.assignments[a.UID] = append(p.order, a.UID), a
		}
	}
	if !g.serves(p) {
		m.move(isDenied)
		return l.settle(g, now), false, false
	}
	g.bindingStarted(now)
	g.plan = p
	g.attempts.block, g.attempts.invited, g.attempts.declined, g.attempts.pausedAt, g.attempts.rests = nil, false, 0,
		time.Time{}, false
	g.run.reach(isPlanned)
	for _, s := range g.members {
		s.declined = false
	}
	l.planned[g.id] = g
	if proceed = p.node(leader) != "" && g.turnCame(p, leader); proceed {
		m.move(isLet)
	} else {
		m.move(isDenied)
	}
	return l.settle(g, now), true, proceed
}

// Reserve records that the member holds an assignment in memory, and reports whether that is the one it has in the
// plan, or whether it needs none. If not, Unreserve has to follow.
func (l *Ledger) Reserve(uid UID, node string, now time.Time) (Effects, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}, false
	}
	switch p := m.group.plan; {
	case p.node(uid) == node && node != "":
		if p.assignments[uid].First {
			m.move(reservesFirst)
		} else {
			m.move(reserves)
		}
		p.refusals.inARow = 0
	case p.node(uid) == "" && m.stage == alone:
		m.move(reserves)
	default:
		m.move(isDenied)
		return Effects{}, false
	}
	m.node = node
	m.group.bindingStarted(now)
	l.changed(m.group.id)
	return Effects{}, true
}

// Permit tells a member that nothing but its siblings can keep from being bound whether it may be bound now (wait is
// zero), has to wait for them for at most wait, or has lost its assignment (ok is false). One that siblings depend on
// comes first: it goes on, and waits after Prepared.
func (l *Ledger) Permit(uid UID, now time.Time) (e Effects, wait time.Duration, first, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	switch {
	case m == nil:
		return Effects{}, 0, false, false
	case m.stage == preparing:
		return Effects{}, 0, true, m.group.plan.node(uid) != ""
	}
	m.move(isPermitted)
	e, wait, ok = l.await(m, now)
	return e, wait, false, ok
}

// Prepared records that what siblings of the member depend on has been written, and tells as Permit does how it goes
// on.
func (l *Ledger) Prepared(uid UID, now time.Time) (e Effects, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}, 0, false
	}
	m.move(isPrepared)
	return l.await(m, now)
}

// await settles the group and says how a member that holds an assignment goes on.
func (l *Ledger) await(m *member, now time.Time) (e Effects, wait time.Duration, ok bool) {
	g := m.group
	if m.stage.waits() && g.plan.node(m.UID) != "" {
		e = l.settle(g, now)
		e.Allow = slices.DeleteFunc(e.Allow, func(r Ref) bool { return r.UID == m.UID })
		if p := g.plan; p != nil && m.stage == released {
			p.flow.toAllow = slices.DeleteFunc(p.flow.toAllow, func(r Ref) bool { return r.UID == m.UID })
		}
		e.Reject = slices.DeleteFunc(e.Reject, func(r Rejection) bool { return r.UID == m.UID })
	}
	switch {
	case m.stage == released:
		return e, 0, true
	case m.stage.waits() && g.plan.node(m.UID) != "":
		return e, max(g.plan.deadline.Sub(now), time.Millisecond), true
	}
	return e, 0, false
}

// Standing is where a member is on its way to a node.
type Standing struct {
	// Alone is set if it is being scheduled as an ordinary pod.
	Alone bool
	// Reserved is set if it holds an assignment of a plan and Permit is still to be asked whether it may be bound.
	Reserved bool
	// Holds is set if it holds an assignment in memory, Allowed if it has been let go.
	Holds, Allowed bool
	// Blocked is set if its group did not fit when it was last tried, and is not being tried again.
	Blocked bool
	// Deadline is until when it may wait for its siblings, zero if there is no plan.
	Deadline time.Time
}

// Standing returns where the member is; the zero value for one that is not known.
func (l *Ledger) Standing(uid UID) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Standing{}
	}
	g := m.group
	s := Standing{Alone: m.stage == alone, Reserved: m.stage == reserved, Holds: m.stage.holds(),
		Allowed: m.stage == released, Blocked: g.attempts.block != nil && !g.attempts.invited}
	if g.plan != nil {
		s.Deadline = g.plan.deadline
	}
	return s
}

// Patience is how much longer the member may wait.
func (s *Standing) Patience(now time.Time) time.Duration {
	return max(s.Deadline.Sub(now), time.Millisecond)
}
