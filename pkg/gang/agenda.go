package gang

import (
	"slices"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
)

// Agenda is the part of a ledger for the loop: which groups wait, which are invited to plan, and what is due.
type Agenda struct{ *store }

// Changed returns the groups that may look different since it was last asked.
func (a *Agenda) Changed() map[ID]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed := a.changed
	a.changed = map[ID]bool{}
	return changed
}

// Waiting is a group with enough members that waits to be planned.
type Waiting struct {
	ID  ID
	Key Key
	// Fresh is set if no reason is known that keeps the group from starting.
	Fresh bool
	// Since is when enough members existed.
	Since time.Time
	// Touched is set if something has happened since the last attempt that may help the group.
	Touched bool
	// RetryAt is when the pause after the last attempt ends.
	RetryAt time.Time
	// Need is what is missing to the minimum, Of the whole minimum.
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
func (a *Agenda) Waiting(id ID) (Waiting, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.groups[id]
	if !mayBeInvited(g) || g.holding > 0 || g.lead() == nil {
		return Waiting{}, false
	}
	of, block := g.spec().Minimum, g.attempts.block
	return Waiting{ID: id, Key: placeOf(g, g.lead()), Fresh: block == nil, Touched: block != nil && block.touched,
		Since: g.run.quorumAt, RetryAt: g.attempts.retryAt, Of: of, Held: g.census.Settled(),
		Need: of.Without(g.census.Settled(), g.census.SettledIn), Classes: g.waiting()}, true
}

// mayBeInvited reports whether the group is known, complete, and not being planned or evicted or past all plans.
func mayBeInvited(g *group) bool {
	return g != nil && g.plan == nil && !g.attempts.invited && !g.started() && !g.eviction.evicting() && g.quorum()
}

// TakeOver records that all known by now was left by an earlier scheduler. A group in the middle of its start comes
// first, regardless of priority, until it has been tried once: the earlier scheduler had taken the nodes that it lacks,
// and without them it stays bound in part.
func (a *Agenda) TakeOver() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.groups {
		g.attempts.resumes = g.census.Count[Bound] > 0 && !g.run.hadMinimum() && g.quorum()
	}
}

// Invite lets the leader of a group that waits enter the queue, to plan.
func (a *Agenda) Invite(id ID, now time.Time) Effects {
	return a.on(id, func(g *group) {
		if mayBeInvited(g) {
			g.invite(now)
		}
	})
}

// Resume is Invite for a group whose last attempt waited for a search that has ended. It does not count as another
// attempt.
func (a *Agenda) Resume(id ID, now time.Time) Effects {
	return a.on(id, func(g *group) {
		if mayBeInvited(g) {
			g.attempts.failed = max(g.attempts.failed-1, 0)
			g.invite(now)
		}
	})
}

// RuleOut records that the group cannot be placed now by the count of free capacity, without a cycle. It is not an
// attempt.
func (a *Agenda) RuleOut(id ID, reason obstacle.Reason, now time.Time) {
	a.on(id, func(g *group) {
		if g.plan == nil && !g.started() && g.quorum() {
			if g.attempts.ruleOut(reason, now) {
				a.change(id)
			}
			g.updateBusy()
		}
	})
}

// Coming is a group that is about to take capacity: it was invited to plan, or its members have nodes and are not bound
// yet.
type Coming struct {
	ID ID
	// InvitedAt is when it was invited to plan, zero if it has done so.
	InvitedAt time.Time
	// Members are those that were given a node and are not bound.
	Members []Placed
}

// Placed is a member and the node that it is to have.
type Placed struct {
	Ref
	Node string
}

// Coming returns the groups that are about to take capacity, by name.
func (a *Agenda) Coming() []Coming {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]Coming, 0, len(a.busy))
	for id, g := range a.busy {
		if g.plan == nil && !g.attempts.invited {
			continue
		}
		c := Coming{ID: id}
		if g.attempts.invited && g.plan == nil {
			c.InvitedAt = g.attempts.invitedAt
		}
		for _, m := range g.members {
			node := g.plan.node(m)
			if m.stage.holds() {
				node = m.node
			}
			if node != "" && m.State == Pending {
				c.Members = append(c.Members, Placed{m.Ref, node})
			}
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Coming) int { return a.ID.Compare(b.ID) })
	return all
}

// Stragglers returns by group the pending members that degraded groups need.
func (a *Agenda) Stragglers() map[ID][]Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	refs := map[ID][]Ref{}
	for id, g := range a.busy {
		if !g.degraded() {
			continue
		}
		for _, m := range g.members {
			if purpose, _ := m.purpose(); m.mayLead() && purpose != Wait {
				refs[id] = append(refs[id], m.Ref)
			}
		}
	}
	return refs
}

// Flowing reports whether members of a plan wait to be let into the queue, or to be let go, after others of it.
func (a *Agenda) Flowing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.busy {
		if p := g.plan; p != nil && (len(p.flow.toAllow) > 0 || p.progress == reserving && !p.allQueued()) {
			return true
		}
	}
	return false
}

// patience is how long a group waits for the leader that was invited to plan: another plugin may keep it out of the
// queue.
const patience = 10 * time.Second

// Expire does what is due: it ends plans whose time is over, lets the next members of large plans into the queue, lets
// members go that wait only for members beyond the minimum, invites another leader where the invited one does not come,
// and ends the wait for evictions that take too long.
func (a *Agenda) Expire(backoff Backoff, now time.Time) Effects {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.busy {
		g.expire(backoff, now)
	}
	return a.takeEffects()
}

// expire does what is due for the group.
func (g *group) expire(backoff Backoff, now time.Time) {
	if p := g.plan; p != nil && p.progress != committed {
		g.activate(p.moreToQueue(now)...)
		switch {
		case !now.Before(p.deadline):
			g.planExpired(len(p.assignments), p.ready.total, backoff, now)
		case !p.flow.enoughAt.IsZero() && now.Sub(p.flow.enoughAt) >= stragglersGrace && p.allQueued() && servesReady(g, p):
			g.commit()
			g.settle(now)
		}
	}
	if g.eviction.evicting() && !now.Before(g.eviction.until) {
		g.eviction.until = time.Time{}
		g.settle(now)
	}
	if g.plan != nil {
		g.allowMore(now)
	}
	if g.attempts.invited && !g.attempts.came && now.Sub(g.attempts.invitedAt) >= patience {
		// Another leads in place of one that does not come.
		if m := g.lead(); m != nil {
			g.decline(m)
		}
		g.invite(now)
	}
}
