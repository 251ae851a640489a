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

// Waiting returns the group if it waits to be planned and nobody has been invited to do it.
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
	g.invited = true
	return l.settle(g, now)
}

// Block records that the group cannot be placed now, as a scheduling cycle of its leader has found. short holds the classes
// of which not every member found a node. The group holds nothing afterwards.
func (l *Ledger) Block(id ID, reason string, short []string, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return Effects{}
	}
	if g.leader != nil {
		g.leader.move(isDenied)
	}
	return l.blockGroup(g, reason, short, true, backoff, now)
}

// RuleOut records that the group cannot be placed now, as an account of the cluster shows without a cycle. It is not an
// attempt, so the pauses start anew.
func (l *Ledger) RuleOut(id ID, reason string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.plan != nil || g.started() || !g.quorum() {
		return
	}
	g.attempts, g.invited = 0, false
	if g.block != nil && g.block.reason == reason && !g.block.cycle {
		return
	}
	g.block = &block{reason: reason, tried: now, retryAt: now}
	l.changed(id)
}

func (l *Ledger) blockGroup(g *group, reason string, short []string, cycle bool, backoff Backoff, now time.Time) Effects {
	g.attempts++
	g.block = &block{reason: reason, tried: now, retryAt: now.Add(backoff.after(g.attempts)), cycle: cycle, short: map[string]bool{}}
	for _, class := range short {
		g.block.short[class] = true
	}
	attempts := g.attempts
	e := l.release(g, reason)
	e = merge(e, l.settle(g, now))
	g.attempts = attempts
	return e
}
