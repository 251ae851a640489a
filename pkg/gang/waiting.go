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
	// Touched is set if something has happened since the last attempt that may help the group.
	Touched bool
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
	if !g.mayBeInvited() || g.holding > 0 || g.lead() == nil {
		return Waiting{}, false
	}
	s := g.spec()
	w := Waiting{ID: id, Key: g.key(), Fresh: g.attempts.block == nil, Since: g.run.quorumAt, Of: s.Minimum,
		Held: g.census.settled(),
		Need: s.Minimum.Without(g.census.settled(), g.census.settledIn)}
	w.RetryAt, w.Touched = g.attempts.retryAt, g.attempts.block != nil && g.attempts.block.touched
	w.Classes = g.waitingClasses()
	return w, true
}

// waitingClasses counts the members that can be placed by class and role, the oldest member's first.
func (g *group) waitingClasses() []WaitingClass {
	type kind struct{ class, role string }
	type tally struct {
		kind
		count  int
		oldest *member
	}
	var all []tally
	index := map[kind]int{}
	at := 0
	for _, m := range g.members {
		if !m.mayLead() {
			continue
		}
		// Members of one class are the rule, so that the last one found is tried first.
		if len(all) == 0 || all[at].class != m.Class || all[at].role != m.Role {
			k := kind{m.Class, m.Role}
			i, known := index[k]
			if !known {
				i = len(all)
				index[k] = i
				all = append(all, tally{kind: k, oldest: m})
			}
			at = i
		}
		all[at].count++
		if m.before(all[at].oldest) {
			all[at].oldest = m
		}
	}
	slices.SortFunc(all, func(a, b tally) int { return byAge(a.oldest, b.oldest) })
	classes := make([]WaitingClass, len(all))
	for i, t := range all {
		classes[i] = WaitingClass{Class: t.class, Role: t.role, Count: t.count, Example: t.oldest.Ref()}
	}
	return classes
}

// mayBeInvited reports whether the group is known, complete and not being planned, started or evicted.
func (g *group) mayBeInvited() bool {
	return g != nil && g.plan == nil && !g.attempts.invited && !g.started() && !g.evicting() && g.quorum()
}

// TakeOver records that what is known by now is what an earlier scheduler has left. A group in the middle of its start
// comes before everything else, whatever its priority, until it has been tried once: an earlier scheduler had taken the
// places that it lacks, and without them it stays bound in part.
func (l *Ledger) TakeOver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		g.attempts.resumes = g.census.states[Bound] > 0 && !g.run.hadMinimum() && g.quorum()
	}
}

// Invite lets the leader of a group that waits enter the queue, to plan.
func (l *Ledger) Invite(id ID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.groups[id]; g.mayBeInvited() {
		return l.invite(g, now)
	}
	return Effects{}
}

// Resume is Invite for a group whose last attempt has not ended yet: it went to look for something, which has been
// found.
func (l *Ledger) Resume(id ID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if !g.mayBeInvited() {
		return Effects{}
	}
	g.attempts.failed = max(g.attempts.failed-1, 0)
	return l.invite(g, now)
}

// invite lets the leader enter the queue to plan.
func (l *Ledger) invite(g *group, now time.Time) Effects {
	g.attempts.invited, g.attempts.invitedAt = true, now
	if g.attempts.block != nil {
		g.attempts.block.touched = false
	}
	l.invited[g.id] = g
	return l.settle(g, now)
}
