package gang

import (
	"slices"

	"berth.dev/berth/pkg/gang/obstacle"
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
	// Members are the members that can be placed, oldest first, for a Lead.
	Members []Member
}

// lead fills in what the leader of the group has to plan for.
func (t *Turn) lead(g *group) {
	held := numbers{roles: map[string]int{}}
	for _, m := range g.members {
		switch {
		case m.mayLead():
			t.Members = append(t.Members, m.Member)
		case m.State == Pending && m.stage.holds():
			held.add(m.Role, 1)
		}
	}
	t.Of, t.Held = g.spec().Minimum, g.census.Settled()+held.total
	t.Need = t.Of.Without(t.Held, func(role string) int { return g.census.SettledIn(role) + held.roles[role] })
	slices.SortFunc(t.Members, func(a, b Member) int { return a.compare(&b) })
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
	case g.eviction.evicting():
		return Hold, obstacle.Obstacle{Cause: obstacle.Evicted, Group: g.id}
	case g.plan.node(m) != "" && g.plan.turnCame(m):
		return Follow, nil
	case g.plan.node(m) != "":
		return Hold, obstacle.Obstacle{Cause: obstacle.WaitsForTurn, Group: g.id}
	case g.plan != nil && !g.plan.open && !g.plan.committed:
		return Hold, obstacle.Obstacle{Cause: obstacle.LeftOut, Group: g.id}
	case g.started():
		if lacking := g.lacking(m); lacking != nil {
			return Hold, obstacle.Obstacle{Cause: obstacle.Surplus, Group: g.id, Says: lacking.Short(g.census.SettledIn)}
		}
		return Free, nil
	case g.plan != nil && g.plan.committed:
		return Hold, obstacle.Obstacle{Cause: obstacle.Starting, Group: g.id}
	case g.plan == nil && g.holding > 0:
		return Hold, obstacle.Obstacle{Cause: obstacle.GivingBack, Group: g.id, Have: g.holding}
	case !g.quorum():
		return Hold, incomplete(g)
	case g.lead() != m:
		if g.attempts.block != nil {
			return Hold, g.attempts.block.reason
		}
		leader := "of another scheduler"
		if g.leader != nil {
			leader = g.leader.Name
		}
		return Hold, obstacle.Obstacle{Cause: obstacle.Represented, Group: g.id, Pod: leader}
	default:
		return Lead, nil
	}
}

// incomplete says how many members the group lacks.
func incomplete(g *group) obstacle.Reason {
	if g.note != "" {
		return obstacle.Told(g.note)
	}
	minimum := g.spec().Minimum
	return obstacle.Obstacle{Cause: obstacle.TooFewMembers, Group: g.id, Have: g.census.Existing(), Need: minimum.Total,
		Says: minimum.Groups().Short(g.census.existingIn)}
}

// uninvited says why the leader may not plan now.
func uninvited(g *group) obstacle.Reason {
	if g.attempts.block != nil {
		return g.attempts.block.reason
	}
	return obstacle.Obstacle{Cause: obstacle.Uninvited, Group: g.id}
}
