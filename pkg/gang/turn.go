package gang

import (
	"slices"

	"berth.dev/berth/pkg/obstacle"
)

// TurnKind says what a member's scheduling cycle is for.
type TurnKind uint8

// The kinds of turns.
const (
	// Hold means that the member must not be scheduled now.
	Hold TurnKind = iota
	// Free means that the member is scheduled like any pod: its group has started.
	Free
	// Follow means that the member takes its assignment of the plan.
	Follow
	// Lead means that the member's cycle plans for the whole group.
	Lead
)

// Turn is the answer to a member that has come to the head of the queue.
type Turn struct {
	Kind TurnKind
	// Node is the assignment of a Follow.
	Node string
	// Why explains a Hold.
	Why obstacle.Reason
	// Need is how many of Members have to be placed at least, Of the whole minimum, for a Lead.
	Need, Of Minimum
	// Held is the number of members that are bound, finished or assigned already, for a Lead.
	Held int
	// Reopened is set for a Lead that plans for what a plan has lost while others hold what it gave them.
	Reopened bool
	// Members are the members that can be placed, oldest first, for a Lead.
	Members []Member
}

// Admit reports whether the pod may enter the scheduling queue, and why not. An admitted pod's Key is frozen.
func (l *Ledger) Admit(uid UID) (ok bool, why obstacle.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return false, obstacle.Obstacle{Cause: obstacle.Unknown}
	}
	switch kind, why := m.turn(); {
	case kind == Hold:
		m.move(isDenied)
		return false, why
	case kind == Lead && !m.group.mayPlan():
		// Only an invitation lets it in; a queue that tries it on the off chance does not.
		m.move(isDenied)
		return false, m.group.uninvited()
	}
	m.move(isLet)
	m.freeze()
	return true, nil
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
		return Turn{Kind: Hold, Why: obstacle.Obstacle{Cause: obstacle.Unknown}}
	}
	g := m.group
	if g.attempts.invited && m.stage == queued && m.mayLead() {
		// Another may have been invited since, but this one is here first.
		g.leader, m.declined = m, false
	}
	kind, why := m.turn()
	if kind == Lead && !g.mayPlan() && (g.attempts.planner != m || m.stage != held) {
		// The invitation was taken back while the member was in the queue. One that is asked again in the cycle that
		// has found the group not to fit still leads.
		kind, why = Hold, g.uninvited()
	}
	t := Turn{Kind: kind, Why: why}
	switch kind {
	case Hold:
		m.move(isDenied)
	case Free:
		m.move(isLet)
		m.move(goesAlone)
	case Follow:
		t.Node = g.plan.node(uid)
	case Lead:
		g.attempts.planner = m
		// It has come, so that no other is invited in its place.
		delete(l.invited, g.id)
		total, roles := g.census.settled(), map[string]int{}
		for _, s := range g.members {
			switch {
			case s.State != Pending:
			case s.stage.holds():
				total++
				roles[s.Role]++
			case s.Ours:
				t.Members = append(t.Members, s.Member)
			}
		}
		t.Of, t.Held, t.Reopened = g.spec().Minimum, total, g.reopened()
		t.Need = t.Of.Without(total, func(role string) int { return g.census.settledIn(role) + roles[role] })
		slices.SortFunc(t.Members, func(a, b Member) int { return a.compare(&b) })
	}
	return t
}

// turn is the one place that decides what a member may do now.
func (m *member) turn() (TurnKind, obstacle.Reason) {
	g := m.group
	switch {
	case m.State != Pending:
		return Hold, obstacle.Obstacle{Cause: obstacle.NotPending}
	case g.spec() == nil && g.note != "":
		return Hold, obstacle.Told(g.note)
	case g.spec() == nil:
		return Hold, obstacle.Obstacle{Cause: obstacle.NoPodGroup, Group: g.id}
	case g.evicting():
		return Hold, obstacle.Obstacle{Cause: obstacle.Evicted, Group: g.id}
	case g.plan.node(m.UID) != "" && g.turnCame(g.plan, m.UID):
		return Follow, nil
	case g.plan.node(m.UID) != "":
		return Hold, obstacle.Obstacle{Cause: obstacle.WaitsForTurn, Group: g.id}
	case g.plan != nil && !g.plan.open && !g.plan.committed:
		return Hold, obstacle.Obstacle{Cause: obstacle.LeftOut, Group: g.id}
	case g.started():
		return Free, nil
	case g.plan != nil && g.plan.committed:
		return Hold, obstacle.Obstacle{Cause: obstacle.Starting, Group: g.id}
	case g.plan == nil && g.holding > 0:
		return Hold, obstacle.Obstacle{Cause: obstacle.GivingBack, Group: g.id, Have: g.holding}
	case !g.quorum():
		return Hold, g.incomplete()
	case g.lead() != m:
		if g.attempts.block != nil {
			return Hold, g.attempts.block.reason
		}
		return Hold, obstacle.Obstacle{Cause: obstacle.Represented, Group: g.id, Pod: g.leaderName()}
	default:
		return Lead, nil
	}
}

// incomplete says how many members the group lacks.
func (g *group) incomplete() obstacle.Reason {
	if g.note != "" {
		return obstacle.Told(g.note)
	}
	minimum := g.spec().Minimum
	for _, role := range minimum.sorted() {
		if have := g.census.existingIn(role); have < minimum.Roles[role] {
			return obstacle.Obstacle{Cause: obstacle.TooFewMembers, Group: g.id, Role: role, Have: have,
				Need: minimum.Roles[role]}
		}
	}
	return obstacle.Obstacle{Cause: obstacle.TooFewMembers, Group: g.id, Have: g.census.existing(), Need: minimum.Total}
}

// uninvited says why the leader may not plan now.
func (g *group) uninvited() obstacle.Reason {
	if g.attempts.block != nil {
		return g.attempts.block.reason
	}
	return obstacle.Obstacle{Cause: obstacle.Uninvited, Group: g.id}
}

func (g *group) leaderName() string {
	if g.leader == nil {
		return "of another scheduler"
	}
	return g.leader.Name
}

func (m *member) freeze() {
	g := m.group
	m.key = g.key()
	m.key.Committing = (g.plan != nil || g.attempts.resumes) && !g.started()
	if g.plan == nil && !g.started() && g.attempts.pausedAt.After(m.key.Time) {
		// All pods that came while it planned go before it goes on.
		m.key.Time = g.attempts.pausedAt
	}
	if g.started() && !g.degraded() && g.plan == nil {
		// An ordinary pod: its own priority and age count.
		m.key.Priority, m.key.Precedence, m.key.Time, m.key.Tie = m.Priority, m.Precedence, m.Created, m.UID
	}
	m.keyed = true
}

// key is the group's place in the queue.
func (g *group) key() Key {
	k := Key{Priority: g.census.priority(), Precedence: g.census.precedence(), Degraded: g.degraded()}
	if s := g.spec(); s != nil {
		k.Time, k.Tie = s.Created, s.UID
	}
	return k
}
