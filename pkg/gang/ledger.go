package gang

import (
	"sync"
	"time"
)

// Ledger holds what is known about every group. Its methods may be called from any goroutine; each is idempotent
// where it observes, and returns the effects that the caller has to carry out.
type Ledger struct {
	mu     sync.Mutex
	groups map[ID]*group
	member map[UID]*member
	// planned holds the groups whose plan has not been committed, the only ones that can run out of time.
	planned map[ID]*group
	// blocked holds the groups that did not fit when they were last tried.
	blocked map[ID]*group
	timeout time.Duration
	changed func(ID)
}

// NewLedger returns an empty ledger. Timeout is that of groups without an object of their own. changed, which may be nil, is
// called with every group that may look different afterwards; it is called under the ledger's lock and must return at once.
func NewLedger(timeout time.Duration, changed func(ID)) *Ledger {
	if changed == nil {
		changed = func(ID) {}
	}
	return &Ledger{
		groups:  map[ID]*group{},
		member:  map[UID]*member{},
		planned: map[ID]*group{},
		blocked: map[ID]*group{},
		timeout: timeout,
		changed: changed,
	}
}

type member struct {
	Member
	group *group
	// parked is set while the pod is held back, so that it is activated exactly once when that ends.
	parked bool
	// free is set while the pod is scheduled as an ordinary one, outside any plan.
	free bool
	// seated is the node of the seat that the pod holds in memory and has not been bound to yet.
	seated string
	// epoch is the plan under which seated was given.
	epoch uint64
	key   Key
	keyed bool
}

type group struct {
	id ID
	// object is the specification by an object of its own; label the one that members carry themselves. The object wins.
	object, label *Spec
	members       map[UID]*member
	count         [states]int
	running       int
	// seated counts members that hold a seat in memory.
	seated     int
	priorities map[int32]int
	// minimums counts the members by what they say the minimum is.
	minimums map[int]int
	leader   *member
	// started is set once the minimum was bound, which makes later losses a degradation.
	started bool
	// quorumAt is when enough members existed for the first time.
	quorumAt time.Time
	plan     *plan
	block    *block
	epoch    uint64
	// attempts counts plans that failed in a row.
	attempts int
	// recoveries counts how often the present plan lost a seat before it was committed.
	recoveries int
}

func (g *group) spec() *Spec {
	if g.object != nil {
		return g.object
	}
	return g.label
}

// settled is the number of members that need no seat any more.
func (g *group) settled() int { return g.count[Bound] + g.count[Succeeded] }

// complete reports whether the minimum runs, so that any further member is an ordinary pod.
func (g *group) complete() bool { s := g.spec(); return s != nil && g.settled() >= s.MinMember }

// quorum reports whether enough members exist to start.
func (g *group) quorum() bool {
	s := g.spec()
	return s != nil && g.settled()+g.count[Pending] >= s.MinMember
}

func (g *group) priority() int32 {
	lowest, first := int32(0), true
	for p := range g.priorities {
		if first || p < lowest {
			lowest, first = p, false
		}
	}
	return lowest
}

// Define records the specification of a group by an object of its own.
func (l *Ledger) Define(id ID, spec Spec, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.open(id)
	if g.object != nil && *g.object == spec {
		return Effects{}
	}
	g.object = &spec
	l.unblock(g)
	return l.settle(g, now)
}

// relabel derives the specification that a group's members carry themselves, after m came, changed or went. Where they
// disagree the largest minimum holds: starting too few pods cannot be undone, waiting can. The group is as old as the
// oldest member that was ever seen to say so.
func (l *Ledger) relabel(g *group, m *member) {
	minimum := g.minimum()
	if minimum == 0 {
		g.label = nil
		return
	}
	spec := Spec{MinMember: minimum, UID: UID(g.id.String()), Timeout: l.timeout}
	if g.label != nil {
		spec.Created = g.label.Created
	}
	if g.label == nil || (m.Minimum > 0 && m.Created.Before(spec.Created)) {
		spec.Created = m.Created
	}
	if g.label == nil || g.label.MinMember != minimum {
		l.unblock(g)
	}
	g.label = &spec
}

// minimum is the largest that members carry themselves.
func (g *group) minimum() int {
	largest := 0
	for n := range g.minimums {
		largest = max(largest, n)
	}
	return largest
}

// Undefine forgets the specification by an object: members that are not bound wait for a new one.
func (l *Ledger) Undefine(id ID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.object == nil {
		return Effects{}
	}
	g.object = nil
	l.unblock(g)
	e := l.settle(g, now)
	l.drop(g)
	return e
}

// Observe records what is known of a member. A member that moves to another group leaves its old one.
func (l *Ledger) Observe(id ID, m Member, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e Effects
	known := l.member[m.UID]
	if known != nil && known.group.id != id {
		e = l.forget(known, now)
		known = nil
	}
	if known != nil && known.Member == m {
		return e
	}
	g := l.open(id)
	if g.block != nil && m.State == Pending && g.news(known, &m) {
		l.unblock(g)
	}
	if known == nil {
		known = &member{Member: m, group: g, parked: true}
		l.member[m.UID] = known
		g.members[m.UID] = known
	} else {
		g.uncount(known)
		known.Member = m
	}
	g.add(known)
	if m.Minimum > 0 || g.label != nil {
		l.relabel(g, known)
	}
	if m.State != Pending && known.seated != "" {
		// Bound by us or by somebody else, or going away: either way the seat in memory is history.
		known.sit("")
	}
	if g.leader == known && m.State != Pending {
		g.leader = nil
	}
	return merge(e, l.settle(g, now))
}

// news reports whether a group that did not fit may fit because of m, which was known before, if at all, as known: it asks
// for something else now, or for what none of its siblings asks for.
func (g *group) news(known *member, m *Member) bool {
	if known != nil {
		return known.Class != m.Class
	}
	for _, o := range g.members {
		if o.State == Pending && o.Class == m.Class {
			return false
		}
	}
	return true
}

// Forget removes a member that does not exist any more.
func (l *Ledger) Forget(uid UID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.member[uid]; m != nil {
		return l.forget(m, now)
	}
	return Effects{}
}

func (l *Ledger) forget(m *member, now time.Time) Effects {
	g := m.group
	m.sit("")
	g.uncount(m)
	delete(g.members, m.UID)
	delete(l.member, m.UID)
	if g.leader == m {
		g.leader = nil
	}
	if g.plan != nil {
		delete(g.plan.seats, m.UID)
	}
	if m.Minimum > 0 {
		l.relabel(g, m)
	}
	e := l.settle(g, now)
	l.drop(g)
	return e
}

func (g *group) add(m *member) {
	g.count[m.State]++
	if m.Running {
		g.running++
	}
	g.priorities[m.Priority]++
	if m.Minimum > 0 {
		g.minimums[m.Minimum]++
	}
}

func (g *group) uncount(m *member) {
	g.count[m.State]--
	if m.Running {
		g.running--
	}
	if g.priorities[m.Priority]--; g.priorities[m.Priority] == 0 {
		delete(g.priorities, m.Priority)
	}
	if m.Minimum == 0 {
		return
	}
	if g.minimums[m.Minimum]--; g.minimums[m.Minimum] == 0 {
		delete(g.minimums, m.Minimum)
	}
}

func (l *Ledger) open(id ID) *group {
	g := l.groups[id]
	if g == nil {
		g = &group{id: id, members: map[UID]*member{}, priorities: map[int32]int{}, minimums: map[int]int{}}
		l.groups[id] = g
	}
	return g
}

// drop forgets a group of which nothing is left.
func (l *Ledger) drop(g *group) {
	if len(g.members) == 0 && g.object == nil {
		delete(l.groups, g.id)
		delete(l.planned, g.id)
		delete(l.blocked, g.id)
	}
}

// lead returns the member that stands for the group in the queue: the oldest that can be placed, chosen anew only
// when it is gone, so that the queue sees one leader at a time.
func (g *group) lead() *member {
	if g.leader != nil && g.leader.State == Pending && g.leader.Ours && g.leader.seated == "" {
		return g.leader
	}
	g.leader = nil
	for _, m := range g.members {
		if m.State == Pending && m.Ours && m.seated == "" && (g.leader == nil || m.before(g.leader)) {
			g.leader = m
		}
	}
	return g.leader
}

// sit records the seat that the member holds in memory; the empty node is none.
func (m *member) sit(node string) {
	if m.seated != "" {
		m.group.seated--
	}
	if node != "" {
		m.group.seated++
	}
	m.seated = node
}

func (m *member) before(o *member) bool {
	if !m.Created.Equal(o.Created) {
		return m.Created.Before(o.Created)
	}
	if m.Name != o.Name {
		return m.Name < o.Name
	}
	return m.UID < o.UID
}

func merge(a, b Effects) Effects {
	a.Activate = append(a.Activate, b.Activate...)
	a.Allow = append(a.Allow, b.Allow...)
	a.Reject = append(a.Reject, b.Reject...)
	if b.Reason != "" {
		a.Reason = b.Reason
	}
	if b.Started {
		a.Started, a.Waited = true, b.Waited
	}
	return a
}
