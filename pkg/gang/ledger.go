package gang

import (
	"sync"
	"time"

	"berth.dev/berth/pkg/obstacle"
)

// Ledger holds what is known about every group. Its methods may be called from any goroutine; each is idempotent
// where it observes, and returns the effects that the caller has to carry out.
type Ledger struct {
	mu     sync.Mutex
	groups map[ID]*group
	member map[UID]*member
	// planned holds the groups whose plan has not been committed, the only ones that can run out of time. invited holds
	// those whose leader was invited to plan, and some that it has done so since.
	planned, invited map[ID]*group
	// coming holds the groups that are about to take capacity, and some that were.
	coming map[ID]*group
	// binding holds the groups with members that wait to be let go after others.
	binding map[ID]*group
	// degraded holds the groups that have started and have fewer than their minimum.
	degraded map[ID]*group
	// evicted holds the groups that are being evicted as a whole.
	evicted map[ID]*group
	timeout time.Duration
	changed func(ID)
}

// NewLedger returns an empty ledger. Timeout is that of groups without an object of their own. changed, which may be
// nil, is called with every group that may look different afterwards; it is called under the ledger's lock and must
// return at once.
func NewLedger(timeout time.Duration, changed func(ID)) *Ledger {
	if changed == nil {
		changed = func(ID) {}
	}
	return &Ledger{groups: map[ID]*group{}, member: map[UID]*member{}, planned: map[ID]*group{}, invited: map[ID]*group{},
		coming: map[ID]*group{}, binding: map[ID]*group{},
		degraded: map[ID]*group{}, evicted: map[ID]*group{}, timeout: timeout, changed: changed}
}

// Source is where a group's specification comes from. Where several speak, the first counts.
type Source int

// The sources of a specification, in order of precedence.
const (
	// Object is a PodGroup.
	Object Source = iota
	// Owner is the controller that creates the members.
	Owner
	// Label is what the members carry themselves.
	Label
	sources
)

type member struct {
	Member
	group *group
	stage stage
	// node is the assignment that the member holds in memory; it means nothing at stages that hold none.
	node string
	// declined is set while others are to lead rather than this one, which could not plan or did not come.
	declined bool
	key      Key
	keyed    bool
}

type group struct {
	id      ID
	specs   [sources]*Spec
	members map[UID]*member
	census  census
	// holding counts members that hold an assignment in memory.
	holding int
	// leader stands for the group in the queue.
	leader *member
	// run is where the group is in its run, attempts what is known of plans for it.
	run      run
	attempts attempts
	eviction groupEviction
	plan     *plan
	// atRest holds the members that are kept out of the queue.
	atRest map[*member]bool
	// note says why the group is not complete, if the number of members does not tell.
	note string
}

// spec is the specification that counts, or nil.
func (g *group) spec() *Spec {
	for _, s := range g.specs {
		if s != nil {
			return s
		}
	}
	return nil
}

// Define records the specification of a group by a source. Without a time of creation it is as old as its oldest
// member.
func (l *Ledger) Define(id ID, by Source, spec Spec, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.open(id)
	if spec.Created.IsZero() {
		spec.Created = g.age(now)
	}
	if g.specs[by] != nil && g.specs[by].Equal(&spec) {
		return Effects{}
	}
	g.specs[by] = &spec
	g.attempts.unblock(now)
	return l.settle(g, now)
}

// age is since when the group exists, by its oldest member, for specifications that do not say it; it does not change.
func (g *group) age(now time.Time) time.Time {
	if s := g.specs[Owner]; s != nil {
		return s.Created
	}
	oldest := now
	for _, m := range g.members {
		if m.Created.Before(oldest) {
			oldest = m.Created
		}
	}
	return oldest
}

// Undefine forgets the specification by a source. Without any, members that have no node wait for a new one.
func (l *Ledger) Undefine(id ID, by Source, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return Effects{}
	}
	var e Effects
	if g.specs[by] != nil {
		g.specs[by] = nil
		g.attempts.unblock(now)
		e = l.settle(g, now)
	}
	l.drop(g)
	return e
}

// Note records why the group is not complete, if the number of members does not tell; the empty text takes it back.
func (l *Ledger) Note(id ID, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.groups[id]; g != nil && g.note != why {
		g.note = why
		l.changed(id)
	}
}

// Unspecified reports whether nothing says what the group needs, or why it cannot start.
func (l *Ledger) Unspecified(id ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	return g != nil && g.spec() == nil && g.note == ""
}

// relabel derives the specification that a group's members carry themselves, after m came, changed or went. Where they
// disagree the largest minimum holds: starting too few pods cannot be undone, waiting can. The group is as old as the
// oldest member that was ever seen to say so.
func (l *Ledger) relabel(g *group, m *member, now time.Time) {
	minimum, before := g.census.largestLabel(), g.specs[Label]
	if minimum == 0 {
		g.specs[Label] = nil
		return
	}
	spec := Spec{Minimum: Minimum{Total: minimum}, UID: UID(g.id.String()), Timeout: l.timeout}
	if before != nil {
		spec.Created = before.Created
	}
	if before == nil || (m.Minimum > 0 && m.Created.Before(spec.Created)) {
		spec.Created = m.Created
	}
	if before == nil || before.Minimum.Total != minimum {
		g.attempts.unblock(now)
	}
	g.specs[Label] = &spec
}

// Observe records what is known of a member. A member that moves to another group leaves its old one. What is older
// than what is known already, as the order of two informers does not tell, means nothing.
func (l *Ledger) Observe(id ID, m Member, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e Effects
	known := l.member[m.UID]
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
	if g.attempts.block != nil && g.news(known, &m) {
		g.attempts.unblock(now)
	}
	lost := known != nil && known.State == Bound && (m.State == Failed || m.State == Terminating)
	if known == nil {
		known = &member{Member: m, group: g, stage: done}
		l.member[m.UID] = known
		g.members[m.UID] = known
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
	if m.Minimum > 0 || g.specs[Label] != nil {
		l.relabel(g, known, now)
	}
	if g.leader == known && m.State != Pending {
		g.leader = nil
	}
	e = merge(e, l.settle(g, now))
	if lost {
		e.Lost = append(e.Lost, g.loss(known)...)
	}
	return e
}

// loss is what to say of a member that has lost its node: nothing if the group does not need another in its place, or
// nothing says what it needs.
func (g *group) loss(m *member) []Loss {
	if g.spec() == nil || !g.started() || g.met() || m.Node == "" {
		return nil
	}
	return []Loss{{Group: g.id, Member: m.Ref(), Node: m.Node}}
}

// leavePlan takes a member out of its group's plan that has been bound, by this scheduler or another one, or is going
// away. If it waits for its siblings it need not do that any longer.
func (m *member) leavePlan() Effects {
	var e Effects
	if m.stage.waits() {
		why := obstacle.Obstacle{Cause: obstacle.NoMember, Group: m.group.id, Pod: m.Name}
		e.Reject = []Rejection{{Ref: m.Ref(), Reason: why}}
	}
	m.move(isPlaced)
	m.group.plan.drop(m.UID)
	return e
}

// news reports whether a group that did not fit may fit because of m, which was known before, if at all, as known: it
// does not need a node any more, it asks for something else now, or it is one more of a class whose members all found a
// place.
func (g *group) news(known *member, m *Member) bool {
	switch waited := known != nil && known.State == Pending; {
	case m.State == Bound || m.State == Succeeded:
		return known == nil || known.State.rank() < Bound.rank()
	case m.State != Pending:
		return false
	case waited:
		return known.Class != m.Class || known.Role != m.Role
	}
	return !g.attempts.block.short[m.Class]
}

// Forget removes a member that does not exist any more, or is no member any more: one that was held for its group is
// activated, to be scheduled like any pod if it still exists.
func (l *Ledger) Forget(uid UID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	free := m.Ours && (m.stage == held || m.stage.waits())
	e := l.forget(m, now)
	if free {
		e.Activate = append(e.Activate, m.Ref())
	}
	return e
}

func (l *Ledger) forget(m *member, now time.Time) Effects {
	g := m.group
	wasBound := m.State == Bound
	left := m.leavePlan()
	g.census.count(&m.Member, -1)
	delete(g.members, m.UID)
	delete(l.member, m.UID)
	if g.leader == m {
		g.leader = nil
	}
	if g.attempts.planner == m {
		g.attempts.planner = nil
	}
	if m.Minimum > 0 {
		l.relabel(g, m, now)
	}
	e := merge(left, l.settle(g, now))
	if wasBound {
		e.Lost = append(e.Lost, g.loss(m)...)
	}
	l.drop(g)
	return e
}

func (l *Ledger) open(id ID) *group {
	g := l.groups[id]
	if g == nil {
		g = &group{id: id, members: map[UID]*member{}, census: newCensus()}
		l.groups[id] = g
	}
	return g
}

// drop forgets a group that has neither members nor a specification.
func (l *Ledger) drop(g *group) {
	if g.empty() {
		for _, of := range []map[ID]*group{l.groups, l.planned, l.degraded, l.evicted, l.invited, l.coming, l.binding} {
			delete(of, g.id)
		}
	}
}

// empty reports whether the group has neither members nor a specification: at most its start is remembered.
func (g *group) empty() bool { return len(g.members) == 0 && g.spec() == nil }

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
