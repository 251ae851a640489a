package gang

import (
	"sync"
	"time"
)

// Ledger keeps what is known about every group. It records what informers report, and returns what a group looks like;
// scheduling cycles, the loop and the evictor use parts of their own. All methods may be called from any goroutine.
// Those that observe are idempotent and return the effects that the caller has to carry out.
type Ledger struct {
	*store
	Cycles    Cycles
	Agenda    Agenda
	Evictions Evictions
}

// store is what all parts of a ledger share: the groups, their members, and the lock.
type store struct {
	mu      sync.Mutex
	groups  map[ID]*group
	members map[UID]*member
	// busy groups are those that time alone may change, or capacity that becomes free.
	busy map[ID]*group
	// changed groups may look different since they were last asked for; wake signals that there are some.
	changed map[ID]bool
	wake    chan<- struct{}
	// effects are those of the call that holds the lock.
	effects Effects
	// timeout is the default of Spec.Timeout.
	timeout time.Duration
}

// NewLedger returns an empty ledger. timeout is the timeout of groups without a PodGroup. Whenever a group may look
// different, wake gets an element without blocking, if it is not nil; Agenda.Changed returns which groups.
func NewLedger(timeout time.Duration, wake chan<- struct{}) *Ledger {
	s := &store{groups: map[ID]*group{}, members: map[UID]*member{}, busy: map[ID]*group{}, changed: map[ID]bool{},
		wake: wake, timeout: timeout}
	return &Ledger{s, Cycles{s}, Agenda{s}, Evictions{s}}
}

// on does something with a group, or nothing if it is not known, and returns the effects.
func (s *store) on(id ID, do func(g *group)) Effects {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[id]; g != nil {
		do(g)
	}
	return s.takeEffects()
}

// onMember is on for a member.
func (s *store) onMember(uid UID, do func(m *member)) Effects {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[uid]; m != nil {
		do(m)
	}
	return s.takeEffects()
}

// takeEffects returns the effects of the call that holds the lock.
func (s *store) takeEffects() Effects {
	e := s.effects
	s.effects = Effects{}
	return e
}

// open returns the group, a new one if it is not known.
func (s *store) open(id ID) *group {
	g := s.groups[id]
	if g == nil {
		g = &group{id: id, roster: newRoster(), store: s}
		s.groups[id] = g
	}
	return g
}

// change notes that the group may look different.
func (s *store) change(id ID) {
	s.changed[id] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// forget takes a member out of its group.
func (s *store) forget(m *member, now time.Time) {
	g := m.group
	wasBound := m.State == Bound
	m.leavePlan()
	g.count(m, -1)
	delete(g.members, m.UID)
	delete(s.members, m.UID)
	if g.leader == m {
		g.leader = nil
	}
	if g.attempts.planner == m {
		g.attempts.planner = nil
	}
	if m.Minimum > 0 {
		updateLabelSpec(m, s.timeout, now)
	}
	g.settle(now)
	if wasBound {
		g.recordLoss(m)
	}
	s.drop(g)
}

// drop forgets a group that has neither members nor a specification. Nothing happens to it any more.
func (s *store) drop(g *group) {
	if isEmpty(g) {
		delete(s.groups, g.id)
	}
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
	if g.specs[by] == nil || !g.specs[by].Equal(&spec) {
		g.specs[by] = &spec
		g.attempts.unblock(now)
		g.settle(now)
	}
	return l.takeEffects()
}

// Undefine forgets the specification by a source. Without any, members that have no node wait for a new one.
func (l *Ledger) Undefine(id ID, by Source, now time.Time) Effects {
	return l.on(id, func(g *group) {
		if g.specs[by] != nil {
			g.specs[by] = nil
			g.attempts.unblock(now)
			g.settle(now)
		}
		l.drop(g)
	})
}

// Note records why the group is not complete, if the number of members does not tell; the empty text takes it back.
func (l *Ledger) Note(id ID, why string) {
	l.on(id, func(g *group) {
		if g.note != why {
			g.note = why
			l.change(id)
		}
	})
}

// Unspecified reports whether nothing says what the group needs, or why it cannot start.
func (l *Ledger) Unspecified(id ID) (unspecified bool) {
	l.on(id, func(g *group) { unspecified = g.spec() == nil && g.note == "" })
	return unspecified
}

// RecordRejection records the message of a plugin that has turned a member away, and reports whether it is news. Of
// several messages at one instant, from bindings that run at the same time, the first in alphabetical order counts.
func (l *Ledger) RecordRejection(id ID, message string, now time.Time) (news bool) {
	l.on(id, func(g *group) {
		before := g.rejectedAt.Equal(now) && g.rejection != "" && g.rejection < message
		if news = g.rejection != message && !before; news {
			g.rejection, g.rejectedAt = message, now
		}
	})
	return news
}

// LastRejection returns the last message of a plugin that has turned a member away, if any.
func (l *Ledger) LastRejection(id ID) (message string) {
	l.on(id, func(g *group) { message = g.rejection })
	return message
}

// Reconsider has the group tried again after a change of something that it does not specify itself.
func (l *Ledger) Reconsider(id ID, now time.Time) Effects {
	return l.on(id, func(g *group) {
		g.attempts.unblock(now)
		g.settle(now)
	})
}

// Recall records whether the group had started when a scheduler last wrote its status, which may be read before any
// member is seen. Only the first call counts: later statuses repeat what this ledger found. Undefine forgets a group
// whose members are never seen.
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
	g.settle(now)
	return l.takeEffects()
}

// Observe records what is known of a member. A member that moves to another group leaves its old one. An older state
// than the known one is ignored: two informers report in any order.
func (l *Ledger) Observe(id ID, m Member, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.members[m.UID]
	if known != nil && known.State.rank() > m.State.rank() {
		return Effects{}
	}
	if known != nil && known.group.id != id {
		l.forget(known, now)
		// What it leaves behind is its place in the group, not its node.
		l.effects.Lost = nil
		known = nil
	}
	if known != nil && known.Member == m {
		return Effects{}
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
		g.count(known, -1)
		if lost {
			m.Node = known.Node
		}
		known.Member = m
	}
	g.count(known, 1)
	if m.State == Pending {
		known.move(isPending)
	} else {
		known.leavePlan()
	}
	if m.Minimum > 0 || g.specs[Label] != nil {
		updateLabelSpec(known, l.timeout, now)
	}
	if g.leader == known && m.State != Pending {
		g.leader = nil
	}
	g.settle(now)
	if lost {
		g.recordLoss(known)
	}
	return l.takeEffects()
}

// Forget removes a pod that does not exist any more, or is no member any more. If it waited for its group it is
// activated, to be scheduled like any pod.
func (l *Ledger) Forget(uid UID, now time.Time) Effects {
	return l.onMember(uid, func(m *member) {
		free := m.Ours && (m.stage == unqueued || m.stage.waits())
		l.forget(m, now)
		if free {
			l.effects.Activate = append(l.effects.Activate, m.Ref)
		}
	})
}
