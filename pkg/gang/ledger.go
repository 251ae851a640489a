package gang

import "time"

// Ledger holds what is known about every group. It is told what informers report, and answers what a group looks like;
// what scheduling cycles, the loop and the evictor ask and tell is in parts of their own. All methods may be called
// from any goroutine; each is idempotent where it observes, and returns the effects that the caller has to carry out.
type Ledger struct {
	*book
	Cycles    Cycles
	Agenda    Agenda
	Evictions Evictions
}

// NewLedger returns an empty ledger. Timeout is that of groups without an object of their own. wake, which may be nil,
// is given an element, if it has room for one, whenever a group may look different; Agenda.Changed says which.
func NewLedger(timeout time.Duration, wake chan<- struct{}) *Ledger {
	b := &book{groups: map[ID]*group{}, members: map[UID]*member{}, lists: newLists(wake), timeout: timeout}
	return &Ledger{b, Cycles{b}, Agenda{b}, Evictions{b}}
}

// Define records the specification of a group by a source. Without a time of creation it is as old as its oldest
// member.
func (l *Ledger) Define(id ID, by Source, spec Spec, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.open(id)
	if spec.Created.IsZero() {
		spec.Created = age(g, now)
	}
	if g.by[by] != nil && g.by[by].Equal(&spec) {
		return Effects{}
	}
	g.by[by] = &spec
	g.attempts.unblock(now)
	return g.settle(now)
}

// Undefine forgets the specification by a source. Without any, members that have no node wait for a new one.
func (l *Ledger) Undefine(id ID, by Source, now time.Time) Effects {
	return ofGroup(l.book, id, func(g *group) (e Effects) {
		if g.by[by] != nil {
			g.by[by] = nil
			g.attempts.unblock(now)
			e = g.settle(now)
		}
		l.drop(g)
		return e
	})
}

// Note records why the group is not complete, if the number of members does not tell; the empty text takes it back.
func (l *Ledger) Note(id ID, why string) {
	ofGroup(l.book, id, func(g *group) Effects {
		if g.note != why {
			g.note = why
			l.lists.change(id)
		}
		return Effects{}
	})
}

// Unspecified reports whether nothing says what the group needs, or why it cannot start.
func (l *Ledger) Unspecified(id ID) bool {
	return ofGroup(l.book, id, func(g *group) bool { return g.spec() == nil && g.note == "" })
}

// Hear takes note of what a plugin says that has turned a member away, and reports whether that is news. Of what is
// said at one instant, by bindings that run at the same time, the first by the alphabet counts.
func (l *Ledger) Hear(id ID, said string, now time.Time) bool {
	return ofGroup(l.book, id, func(g *group) bool {
		if g.said == said || g.saidAt.Equal(now) && g.said != "" && g.said < said {
			return false
		}
		g.said, g.saidAt = said, now
		return true
	})
}

// Said returns what a plugin said last that has turned a member away, or nothing.
func (l *Ledger) Said(id ID) string {
	return ofGroup(l.book, id, func(g *group) string { return g.said })
}

// Reconsider has the group tried again after a change of something that it does not specify itself.
func (l *Ledger) Reconsider(id ID, now time.Time) Effects {
	return ofGroup(l.book, id, func(g *group) Effects {
		g.attempts.unblock(now)
		return g.settle(now)
	})
}

// Recall records whether the group had started when a scheduler last wrote its status, which may be known before any
// member is. Only the first such word counts: later ones repeat what this ledger said. Undefine forgets a group that
// never shows.
func (l *Ledger) Recall(id ID, past Past, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil && past != NotStarted {
		g = l.open(id)
	}
	if g == nil || g.run.recalled {
		return Effects{}
	}
	g.run.recalled = true
	if past == NotStarted || !g.run.reach(isRecalled) {
		return Effects{}
	}
	if past == HadGrown {
		g.run.reached = &Minimum{}
	}
	return g.settle(now)
}

// Observe records what is known of a member. A member that moves to another group leaves its old one. What is older
// than what is known already, as the order of two informers does not tell, means nothing.
func (l *Ledger) Observe(id ID, m Member, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e Effects
	known := l.members[m.UID]
	if known != nil && known.State.rank() > m.State.rank() {
		return e
	}
	if known != nil && known.group.id != id {
		e = l.forget(known, now)
		// What it leaves behind is its place in the group, not its node.
		e.Lost = nil
		known = nil
	}
	if known != nil && known.Member == m {
		return e
	}
	g := l.open(id)
	if g.attempts.block != nil && g.attempts.block.helped(known, &m) {
		g.attempts.unblock(now)
	}
	lost := known != nil && known.State == Bound && (m.State == Failed || m.State == Terminating)
	if known == nil {
		known = &member{Member: m, group: g, stage: done}
		l.members[m.UID], g.members[m.UID] = known, known
	} else {
		g.census.count(&known.Member, -1)
		if known.Role != m.Role {
			g.plan.recount()
		}
		if lost {
			m.Node = known.Node
		}
		known.Member = m
	}
	g.census.count(&known.Member, 1)
	if m.State == Pending {
		known.move(isPending)
	} else {
		e = merge(e, known.leavePlan())
	}
	if m.Minimum > 0 || g.by[Label] != nil {
		relabel(known, l.timeout, now)
	}
	if g.leader == known && m.State != Pending {
		g.leader = nil
	}
	e = merge(e, g.settle(now))
	if lost {
		e.Lost = append(e.Lost, loss(known)...)
	}
	return e
}

// Forget removes a member that does not exist any more, or is no member any more: one that was held for its group is
// activated, to be scheduled like any pod if it still exists.
func (l *Ledger) Forget(uid UID, now time.Time) Effects {
	return ofMember(l.book, uid, func(m *member) Effects {
		free := m.Ours && (m.stage == held || m.stage.waits())
		e := l.forget(m, now)
		if free {
			e.Activate = append(e.Activate, m.Ref)
		}
		return e
	})
}

func merge(a, b Effects) Effects {
	a.Activate = append(a.Activate, b.Activate...)
	a.Allow = append(a.Allow, b.Allow...)
	a.Reject = append(a.Reject, b.Reject...)
	a.Lost = append(a.Lost, b.Lost...)
	a.Landed = a.Landed || b.Landed
	if b.Started {
		a.Started, a.Waited = true, b.Waited
	}
	return a
}
