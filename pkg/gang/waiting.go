package gang

import (
	"slices"
	"time"
)

// Waiting is a group all of whose members are there and that waits to be planned.
type Waiting struct {
	ID  ID
	Key Key
	// Fresh is set if nothing has kept the group from starting yet, or what did is out of date.
	Fresh bool
	// Since is when enough members existed.
	Since time.Time
	// RetryAt is when the pause after the last attempt ends.
	RetryAt time.Time
	// Need is what is missing to the minimum, Of what the whole minimum is.
	Need, Of Minimum
	// Held is the number of members that are placed or hold assignments already.
	Held int
	// Classes holds what can be placed, the class of the oldest member first.
	Classes []WaitingClass
}

// WaitingClass is the members of a class that can be placed.
type WaitingClass struct {
	Class, Role string
	Count       int
	Example     Ref
}

// Waiting returns the group if it waits to be planned and its leader has not been invited to do it.
func (l *Ledger) Waiting(id ID) (Waiting, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.plan != nil || g.invited || g.started() || !g.quorum() || g.holding > 0 || g.lead() == nil {
		return Waiting{}, false
	}
	s := g.spec()
	w := Waiting{ID: id, Key: g.key(), Fresh: g.block == nil, Since: g.quorumAt, Of: s.Minimum, Held: g.census.settled(),
		Need: s.Minimum.Without(g.census.settled(), g.census.settledIn)}
	if g.block != nil {
		w.RetryAt = g.block.retryAt
	}
	index := map[[2]string]int{}
	for _, m := range g.members {
		if !m.mayLead() {
			continue
		}
		i, known := index[[2]string{m.Class, m.Role}]
		if !known {
			i = len(w.Classes)
			index[[2]string{m.Class, m.Role}] = i
			w.Classes = append(w.Classes, WaitingClass{Class: m.Class, Role: m.Role, Example: m.Ref()})
		}
		w.Classes[i].Count++
		if example := g.members[w.Classes[i].Example.UID]; m.before(example) {
			w.Classes[i].Example = m.Ref()
		}
	}
	slices.SortFunc(w.Classes, func(a, b WaitingClass) int {
		if g.members[a.Example.UID].before(g.members[b.Example.UID]) {
			return -1
		}
		return 1
	})
	return w, true
}

// Invite lets the leader of a group that waits enter the queue, to plan.
func (l *Ledger) Invite(id ID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.plan != nil || g.invited || g.started() || !g.quorum() {
		return Effects{}
	}
	return l.invite(g, now)
}

// Resume is Invite for a group whose last attempt has not ended yet: it went to look for something, which has been found.
func (l *Ledger) Resume(id ID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.plan != nil || g.invited || g.started() || !g.quorum() {
		return Effects{}
	}
	g.attempts = max(g.attempts-1, 0)
	return l.invite(g, now)
}

// invite lets the leader enter the queue to plan.
func (l *Ledger) invite(g *group, now time.Time) Effects {
	g.invited, g.invitedAt = true, now
	l.invited[g.id] = g
	return l.settle(g, now)
}

// patience is how long a group waits for the leader that was invited to plan: another plugin may keep it out of the queue.
const patience = 10 * time.Second

// passOver invites another leader in place of one that does not come.
func (l *Ledger) passOver(g *group, now time.Time) Effects {
	if m := g.lead(); m != nil {
		g.decline(m)
	}
	return l.invite(g, now)
}

// decline passes the lead on from the member, which cannot plan, and reports whether there is another that has not declined.
func (g *group) decline(m *member) bool {
	m.declined, g.leader = true, nil
	if next := g.lead(); next != nil && !next.declined {
		return true
	}
	for _, o := range g.members {
		o.declined = false
	}
	return false
}

// maxDeclined is how many leaders in a row may decline before the group is blocked.
const maxDeclined = 3

// Decline records that the member, whose turn it is to lead, was turned away by a plugin before it could plan. Another one
// leads instead; if several in a row declined, or all, the group is blocked with that reason, and the next attempt is led by
// one that has not declined yet.
func (l *Ledger) Decline(uid UID, why string, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	g := m.group
	if kind, _ := m.turn(); kind != Lead {
		return Effects{}
	}
	m.move(isDenied)
	g.declined++
	if another := g.decline(m); !another || g.declined == maxDeclined {
		return l.block(g, why, nil, g.leader == m, backoff, now)
	}
	return l.invite(g, now)
}
