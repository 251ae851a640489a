package gang

import (
	"fmt"
	"sort"
	"time"
)

// TurnKind says what a member's scheduling cycle is for.
type TurnKind uint8

// The kinds of turns.
const (
	// Hold means that the member must not be scheduled now.
	Hold TurnKind = iota
	// Free means that the member is scheduled like any pod: its group has its minimum.
	Free
	// Follow means that the member takes the seat of the plan.
	Follow
	// Lead means that the member's cycle plans for the whole group.
	Lead
)

// Turn is the answer to a member that has come to the head of the queue.
type Turn struct {
	Kind TurnKind
	// Node is the planned seat of a Follow.
	Node string
	// Why explains a Hold.
	Why string
	// Need is how many of Members have to be seated at least, for a Lead.
	Need int
	// MinMember is the group's minimum, for a Lead.
	MinMember int
	// Held is the number of members that are bound, finished or seated already, for a Lead.
	Held int
	// Attempts is the number of plans that failed in a row, for a Lead.
	Attempts int
	// Members are the members that can be seated, oldest first, for a Lead.
	Members []Member
}

// Admit reports whether the pod may enter the scheduling queue, and why not. An admitted pod's Key is frozen.
func (l *Ledger) Admit(uid UID) (ok bool, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return false, "waiting until the group of the pod is known"
	}
	switch kind, why := m.turn(); {
	case kind == Hold:
		m.parked = true
		return false, why
	case kind == Lead && m.group.block != nil:
		// Whoever knows that something has changed ends the pause; the queue that tries it on the off chance does not.
		m.parked = true
		return false, m.group.block.reason
	}
	m.parked = false
	m.freeze()
	return true, ""
}

// Reopen ends the pause of the group that the member leads, because of something that the caller knows to be news to it, and
// reports whether the member leads one.
func (l *Ledger) Reopen(uid UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return false
	}
	if kind, _ := m.turn(); kind != Lead {
		return false
	}
	l.unblock(m.group)
	return true
}

// Key returns the frozen place in the queue of an admitted pod.
func (l *Ledger) Key(uid UID) (Key, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.member[uid]; m != nil && m.keyed {
		return m.key, true
	}
	return Key{}, false
}

// Turn tells a pod at the head of the queue what its cycle is for.
func (l *Ledger) Turn(uid UID) Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Turn{Kind: Hold, Why: "waiting until the group of the pod is known"}
	}
	g := m.group
	kind, why := m.turn()
	t := Turn{Kind: kind, Why: why}
	switch kind {
	case Hold:
		m.parked = true
	case Free:
		m.free = true
	case Follow:
		t.Node = g.plan.seats[uid]
	case Lead:
		t.MinMember = g.spec().MinMember
		t.Held = g.settled() + g.seatedCount()
		t.Need = max(t.MinMember-t.Held, 0)
		t.Attempts = g.attempts
		for _, s := range g.members {
			if s.State == Pending && s.Ours && s.seated == "" {
				t.Members = append(t.Members, s.Member)
			}
		}
		sort.Slice(t.Members, func(i, j int) bool {
			return (&member{Member: t.Members[i]}).before(&member{Member: t.Members[j]})
		})
	}
	return t
}

// turn is the one place that decides what a member may do now.
func (m *member) turn() (TurnKind, string) {
	g := m.group
	switch {
	case m.State != Pending:
		return Hold, "not schedulable"
	case g.spec() == nil:
		return Hold, fmt.Sprintf("waiting for PodGroup %s", g.id)
	case g.plan != nil && g.plan.seats[m.UID] != "":
		return Follow, ""
	case g.plan != nil && !g.plan.open && !g.plan.committed:
		return Hold, fmt.Sprintf("gang %s: no seat for this member in the plan that is being carried out", g.id)
	case g.complete():
		return Free, ""
	case g.plan != nil && g.plan.committed:
		return Hold, fmt.Sprintf("gang %s is starting", g.id)
	case g.plan == nil && g.seated > 0:
		return Hold, fmt.Sprintf("gang %s is giving back %d seats", g.id, g.seated)
	case !g.quorum():
		return Hold, fmt.Sprintf("gang %s has %d of the %d members that it needs", g.id, g.settled()+g.count[Pending], g.spec().MinMember)
	case g.lead() != m:
		if g.block != nil {
			return Hold, g.block.reason
		}
		return Hold, fmt.Sprintf("gang %s is represented by pod %s", g.id, g.leaderName())
	default:
		return Lead, ""
	}
}

func (g *group) leaderName() string {
	if g.leader == nil {
		return "of another scheduler"
	}
	return g.leader.Name
}

func (m *member) freeze() {
	g := m.group
	s := g.spec()
	m.key = Key{
		Committing: g.plan != nil && !g.complete(),
		Priority:   g.priority(),
		Degraded:   g.started && !g.complete(),
		Time:       s.Created,
		Tie:        s.UID,
	}
	if g.complete() && g.plan == nil {
		// An ordinary pod: its own priority and age count.
		m.key.Priority, m.key.Time, m.key.Tie = m.Priority, m.Created, m.UID
	}
	m.keyed = true
}

// Due is a group that did not fit and may be tried again.
type Due struct {
	ID ID
	// Need is how many of the members have to be seated at least.
	Need int
	// Classes holds the number of members that can be seated by class, and Example one member of each.
	Classes map[string]int
	Example map[string]Ref
	// Failed is when the group was last tried.
	Failed time.Time
	// Degraded is set for a group that had started.
	Degraded bool
	key      Key
}

// Priority is the group's.
func (d *Due) Priority() int32 { return d.key.Priority }

// Due returns the blocked groups that failed before what since tells and whose pause is over, the first to be tried
// first, and when the pause of the next one ends.
func (l *Ledger) Due(now time.Time, since func(failed time.Time) bool) (due []Due, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.blocked {
		switch {
		case !since(g.block.at) || g.spec() == nil:
		case g.block.retryAt.After(now):
			if next.IsZero() || g.block.retryAt.Before(next) {
				next = g.block.retryAt
			}
		default:
			d := Due{ID: g.id, Need: max(g.spec().MinMember-g.settled(), 0), Classes: map[string]int{}, Example: map[string]Ref{}, Failed: g.block.tried, Degraded: g.started, key: g.groupKey()}
			for _, m := range g.members {
				if m.State == Pending && m.Ours {
					d.Classes[m.Class]++
					d.Example[m.Class] = m.Ref()
				}
			}
			due = append(due, d)
		}
	}
	sort.Slice(due, func(i, j int) bool { return due[i].key.Less(due[j].key) })
	return due, next
}

// Retry ends the pause of a blocked group.
func (l *Ledger) Retry(id ID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.block == nil {
		return Effects{}
	}
	l.unblock(g)
	return l.settle(g, now)
}

// Postpone records that a blocked group had no chance now either. What failed before says nothing about the next
// change, so the pauses start anew.
func (l *Ledger) Postpone(id ID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.groups[id]; g != nil && g.block != nil {
		g.block.at, g.attempts = now, 1
	}
}

func (g *group) groupKey() Key {
	k := Key{Priority: g.priority(), Degraded: g.started}
	if s := g.spec(); s != nil {
		k.Time, k.Tie = s.Created, s.UID
	}
	return k
}

// Blocked reports whether the group of the member did not fit when it was last tried.
func (l *Ledger) Blocked(uid UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	return m != nil && m.group.block != nil
}
