package gang

import (
	"sync"
	"time"
)

// book is what all parts of a ledger share: the groups, their members, and the lock.
type book struct {
	mu      sync.Mutex
	groups  map[ID]*group
	members map[UID]*member
	lists   lists
	// timeout is that of groups without an object of their own.
	timeout time.Duration
}

// ofGroup does something with a group, or nothing if it is not known.
func ofGroup[T any](b *book, id ID, do func(g *group) T) (answer T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.groups[id]; g != nil {
		answer = do(g)
	}
	return answer
}

// ofMember does something with a member, or nothing if it is not known.
func ofMember[T any](b *book, uid UID, do func(m *member) T) (answer T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.members[uid]; m != nil {
		answer = do(m)
	}
	return answer
}

// open returns the group, a new one if it is not known.
func (b *book) open(id ID) *group {
	g := b.groups[id]
	if g == nil {
		g = &group{id: id, roster: newRoster(), lists: &b.lists}
		b.groups[id] = g
	}
	return g
}

// forget takes a member out of its group, and returns what follows from that.
func (b *book) forget(m *member, now time.Time) Effects {
	g := m.group
	wasBound := m.State == Bound
	left := m.leavePlan()
	g.census.count(&m.Member, -1)
	delete(g.members, m.UID)
	delete(b.members, m.UID)
	if g.leader == m {
		g.leader = nil
	}
	if g.attempts.planner == m {
		g.attempts.planner = nil
	}
	if m.Minimum > 0 {
		relabel(m, b.timeout, now)
	}
	e := merge(left, g.settle(now))
	if wasBound {
		e.Lost = append(e.Lost, loss(m)...)
	}
	b.drop(g)
	return e
}

// drop forgets a group that has neither members nor a specification. It is on no list any more.
func (b *book) drop(g *group) {
	if isEmpty(g) {
		delete(b.groups, g.id)
	}
}

// lists hold the groups by what is due for them.
type lists struct {
	// planned groups have a plan that is not committed, the only ones that can run out of time. awaited ones have a leader
	// that was invited to plan and has not come.
	planned, awaited map[ID]*group
	// coming groups are about to take capacity; members of binding ones wait to be let go after others.
	coming, binding map[ID]*group
	// degraded groups have started and have fewer than their minimum, evicted ones are being evicted as a whole.
	degraded, evicted map[ID]*group
	// changed groups may look different since they were asked for last, of which wake tells.
	changed map[ID]bool
	wake    chan<- struct{}
}

func newLists(wake chan<- struct{}) lists {
	return lists{planned: map[ID]*group{}, awaited: map[ID]*group{}, coming: map[ID]*group{}, binding: map[ID]*group{},
		degraded: map[ID]*group{}, evicted: map[ID]*group{}, changed: map[ID]bool{}, wake: wake}
}

// file puts the group on the lists on which it belongs. Only invite puts it on that of the awaited.
func (l *lists) file(g *group) {
	p := g.plan
	keep(l.planned, g.id, g, p != nil && !p.committed)
	keep(l.awaited, g.id, g, g.attempts.invited && l.awaited[g.id] != nil)
	keep(l.coming, g.id, g, p != nil || g.attempts.invited)
	keep(l.binding, g.id, g, p != nil && len(p.flow.toAllow) > 0)
	keep(l.degraded, g.id, g, g.degraded())
	keep(l.evicted, g.id, g, g.eviction.evicting())
}

// change notes that the group may look different.
func (l *lists) change(id ID) {
	l.changed[id] = true
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func keep[K comparable, V any](list map[K]V, key K, value V, belongs bool) {
	if belongs {
		list[key] = value
	} else {
		delete(list, key)
	}
}
