package gang

import (
	"fmt"
	"time"
)

// plan is the seats that a group has been given and not all of which are bound yet.
type plan struct {
	epoch uint64
	// seats holds the node of every member of the plan; a bound member keeps its seat until the plan is done.
	seats    map[UID]string
	deadline time.Time
	// committed is set once every seat was reserved and all members were let go.
	committed bool
	// open is set while the plan has lost a seat and a leader has to plan for the members that remain.
	open bool
}

// block is why and until when a group is not tried.
type block struct {
	reason string
	// tried is when the plan failed, at until when the cluster is known to have no room either.
	tried, at time.Time
	retryAt   time.Time
}

// Backoff bounds the pause between two attempts to plan a group that does not fit.
type Backoff struct{ Initial, Max time.Duration }

// after is the pause after so many failures in a row. The first costs nothing: a group is tried again only when
// something has changed, and whoever came first should not lose what became free to somebody who happens to be tried
// at that moment.
func (b Backoff) after(attempts int) time.Duration {
	if attempts < 2 {
		return 0
	}
	d := b.Initial
	for range attempts - 2 {
		if d >= b.Max {
			return b.Max
		}
		d *= 2
	}
	return min(d, b.Max)
}

// Propose makes seats (node by member) the plan of the group that leader leads, and reports whether it still serves:
// members may have come and gone while it was made.
func (l *Ledger) Propose(leader UID, seats map[UID]string, now time.Time) (Effects, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[leader]
	if m == nil {
		return Effects{}, false
	}
	g := m.group
	if kind, _ := m.turn(); kind != Lead || seats[leader] == "" {
		m.parked = true
		return l.settle(g, now), false
	}
	p := &plan{seats: make(map[UID]string, len(seats)), deadline: now.Add(g.spec().Timeout)}
	if g.plan != nil {
		p.deadline = g.plan.deadline
		for uid, node := range g.plan.seats {
			p.seats[uid] = node
		}
	}
	for uid, node := range seats {
		if s := g.members[uid]; s != nil && s.State == Pending && s.seated == "" {
			p.seats[uid] = node
		}
	}
	if g.settled()+g.unbound(p) < g.spec().MinMember {
		m.parked = true
		return l.settle(g, now), false
	}
	g.epoch++
	p.epoch = g.epoch
	for uid := range p.seats {
		g.members[uid].epoch = p.epoch
	}
	g.plan = p
	l.planned[g.id] = g
	l.unblock(g)
	m.parked = false
	return l.settle(g, now), true
}

// unbound counts the seats of p whose members are not bound yet.
func (g *group) unbound(p *plan) int {
	n := 0
	for uid := range p.seats {
		if m := g.members[uid]; m != nil && m.State == Pending {
			n++
		}
	}
	return n
}

// seatedCount counts the members that hold a seat of the present plan in memory.
func (g *group) seatedCount() int {
	if g.plan == nil {
		return 0
	}
	n := 0
	for uid := range g.plan.seats {
		if m := g.members[uid]; m != nil && m.seated != "" {
			n++
		}
	}
	return n
}

// Reserve records that the member holds a seat in memory, and reports whether that is the one it has in the plan, or
// whether it needs none. A member whose plan has changed under it is woken again when it may go.
func (l *Ledger) Reserve(uid UID, node string, now time.Time) (Effects, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}, false
	}
	p := m.group.plan
	switch {
	case p != nil && p.seats[uid] == node:
		m.sit(node)
		m.free = false
		l.changed(m.group.id)
		return Effects{}, true
	case m.free && (p == nil || p.seats[uid] == ""):
		return Effects{}, true
	default:
		m.parked = true
		return l.settle(m.group, now), false
	}
}

// Permit tells a member that has reserved its seat whether it may be bound now (wait is zero), has to wait for its
// siblings for at most wait, or has lost its seat (ok is false).
func (l *Ledger) Permit(uid UID, now time.Time) (e Effects, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}, 0, false
	}
	if m.free {
		return Effects{}, 0, true
	}
	g := m.group
	if m.seated == "" || g.plan == nil || g.plan.seats[uid] == "" {
		return Effects{}, 0, false
	}
	if !g.plan.committed {
		e = l.settle(g, now)
	}
	if g.plan != nil && g.plan.committed {
		for i, r := range e.Allow {
			if r.UID == uid {
				e.Allow = append(e.Allow[:i], e.Allow[i+1:]...)
				break
			}
		}
		return e, 0, true
	}
	if g.plan == nil {
		return e, 0, false
	}
	return e, max(g.plan.deadline.Sub(now), time.Millisecond), true
}

// Unreserve records that the member has given its seat back.
func (l *Ledger) Unreserve(uid UID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	m.free = false
	if m.seated == "" {
		return Effects{}
	}
	m.sit("")
	g := m.group
	if g.plan != nil && m.epoch == g.plan.epoch {
		delete(g.plan.seats, uid)
	}
	return l.settle(g, now)
}

// Broken records that the planned seat of the member does not hold any more. Seats that siblings hold stay, and the
// member leads the planning of the rest, unless that has been tried too often.
func (l *Ledger) Broken(uid UID, why string, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil || m.group.plan == nil || m.group.plan.seats[uid] == "" {
		return Effects{}
	}
	g := m.group
	g.recoveries++
	if g.plan.committed || g.recoveries > 3 {
		return l.blockGroup(g, why, backoff, now)
	}
	for s := range g.plan.seats {
		if o := g.members[s]; o == nil || (o.State == Pending && o.seated == "") {
			delete(g.plan.seats, s)
		}
	}
	g.plan.open = true
	g.leader = m
	m.parked = true
	return l.settle(g, now)
}

// Block records that the group of the member cannot be placed now. It holds nothing afterwards.
func (l *Ledger) Block(uid UID, reason string, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.member[uid]; m != nil {
		m.parked = true
		return l.blockGroup(m.group, reason, backoff, now)
	}
	return Effects{}
}

func (l *Ledger) blockGroup(g *group, reason string, backoff Backoff, now time.Time) Effects {
	g.attempts++
	g.block = &block{reason: reason, tried: now, at: now, retryAt: now}
	if !g.started {
		g.block.retryAt = now.Add(backoff.after(g.attempts))
	}
	l.blocked[g.id] = g
	e := l.release(g, reason)
	l.changed(g.id)
	return e
}

func (l *Ledger) unblock(g *group) {
	if g.block != nil {
		g.block = nil
		delete(l.blocked, g.id)
	}
}

// release drops the plan and asks back every seat that was not let go.
func (l *Ledger) release(g *group, reason string) Effects {
	var e Effects
	p := g.plan
	g.plan = nil
	g.recoveries = 0
	delete(l.planned, g.id)
	if p == nil || p.committed {
		return e
	}
	for uid := range p.seats {
		if m := g.members[uid]; m != nil && m.seated != "" {
			m.parked = true
			e.Reject = append(e.Reject, m.Ref())
			e.Reason = reason
		}
	}
	return e
}

// Expire releases the plans whose time is over.
func (l *Ledger) Expire(backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e Effects
	for _, g := range l.planned {
		if g.plan != nil && !g.plan.committed && now.After(g.plan.deadline) {
			e = merge(e, l.blockGroup(g, fmt.Sprintf("gang %s: %d of %d seats reserved when the schedule timeout of %s was over",
				g.id, g.seatedCount(), len(g.plan.seats), g.spec().Timeout), backoff, now))
		}
	}
	return e
}

// Holding reports whether the member still holds a seat in memory and whether it has been let go.
func (l *Ledger) Holding(uid UID) (held, allowed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil || m.seated == "" {
		return false, false
	}
	p := m.group.plan
	return true, p == nil || p.committed
}

// settle brings a group in line with its members and returns what follows from that. It is the only place that
// commits a plan, ends it, or wakes members that were held back.
func (l *Ledger) settle(g *group, now time.Time) Effects {
	var e Effects
	planned := g.plan != nil
	if p := g.plan; p != nil {
		unbound := g.unbound(p)
		switch {
		case unbound == 0 && !p.open:
			g.plan, g.attempts, g.recoveries = nil, 0, 0
			delete(l.planned, g.id)
		case p.committed:
		case g.spec() == nil:
			e = l.release(g, fmt.Sprintf("PodGroup %s was deleted", g.id))
		case p.open && g.lead() == nil:
			e = l.release(g, fmt.Sprintf("gang %s lost the members that it needs", g.id))
		case p.open:
		case g.settled()+unbound < g.spec().MinMember:
			e = l.release(g, fmt.Sprintf("gang %s lost a member before all %d had a seat", g.id, g.spec().MinMember))
		case g.seatedCount() == unbound:
			p.committed = true
			delete(l.planned, g.id)
			for uid := range p.seats {
				if m := g.members[uid]; m.seated != "" {
					e.Allow = append(e.Allow, m.Ref())
				}
			}
		}
	}
	if g.quorumAt.IsZero() && g.quorum() {
		g.quorumAt = now
	}
	if g.complete() {
		if !g.started && planned {
			e.Started, e.Waited = true, now.Sub(g.quorumAt)
		}
		g.started = true
		l.unblock(g)
	}
	e.Activate = append(e.Activate, l.wake(g)...)
	l.changed(g.id)
	return e
}

// wake returns the members that were held back and need not be any more.
func (l *Ledger) wake(g *group) []Ref {
	if g.spec() == nil {
		return nil
	}
	var refs []Ref
	take := func(m *member) {
		if m == nil || !m.parked {
			return
		}
		if kind, _ := m.turn(); kind == Hold || (kind == Lead && g.block != nil) {
			return
		}
		m.parked = false
		refs = append(refs, m.Ref())
	}
	switch {
	case g.plan != nil && !g.plan.open && !g.plan.committed:
		for uid := range g.plan.seats {
			take(g.members[uid])
		}
	case g.complete():
		for _, m := range g.members {
			take(m)
		}
	case g.quorum():
		take(g.lead())
	}
	return refs
}
