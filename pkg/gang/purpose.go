package gang

import (
	"slices"

	"berth.dev/berth/pkg/gang/obstacle"
)

// Purpose says what a member's scheduling cycle is for.
type Purpose uint8

// The purposes of cycles.
const (
	// Wait means that the member must not be scheduled now.
	Wait Purpose = iota
	// Alone means that the member is scheduled like any pod: its group has started.
	Alone
	// Follow means that the member takes its assignment of the plan.
	Follow
	// Lead means that the member's cycle plans for the whole group.
	Lead
)

// Cycle is what the scheduling cycle of a member is for that has come to the head of the queue.
type Cycle struct {
	Purpose Purpose
	// Node is the assignment of a Follow.
	Node string
	// Why explains a Wait.
	Why obstacle.Reason
	// Demand is what a Lead plans for.
	Demand Demand
}

// Demand is what a plan for a group has to place.
type Demand struct {
	// Need is how many of Members have to be placed at least to reach Minimum.
	Need, Minimum Minimum
	// Placed is the number of members that are bound, finished or assigned already.
	Placed int
	// Members are the members that can be placed, the oldest first.
	Members []Member
}

// demand returns what a plan for the group has to place. The group has a specification.
func (g *group) demand() Demand {
	d, assigned := Demand{Minimum: g.spec().Minimum}, numbers{roles: map[string]int{}}
	for _, m := range g.members {
		switch {
		case m.mayLead():
			d.Members = append(d.Members, m.Member)
		case m.State == Pending && m.stage.holds():
			assigned.add(m.Role, 1)
		}
	}
	d.Placed = g.census.Settled() + assigned.total
	d.Need = d.Minimum.Without(d.Placed, func(role string) int { return g.census.SettledIn(role) + assigned.roles[role] })
	slices.SortFunc(d.Members, func(a, b Member) int { return a.compare(&b) })
	return d
}

// purpose is the one place that decides what a member may do now.
func (m *member) purpose() (Purpose, obstacle.Reason) {
	g := m.group
	switch {
	case m.State != Pending:
		return Wait, obstacle.Obstacle{Cause: obstacle.NotPending}
	case g.spec() == nil && g.note != "":
		return Wait, obstacle.Text(g.note)
	case g.spec() == nil:
		return Wait, obstacle.Obstacle{Cause: obstacle.NoPodGroup, Group: g.id}
	case g.eviction.evicting():
		return Wait, obstacle.Obstacle{Cause: obstacle.Evicted, Group: g.id}
	case g.plan.node(m) != "" && g.plan.mayReserve(m):
		return Follow, nil
	case g.plan.node(m) != "":
		return Wait, obstacle.Obstacle{Cause: obstacle.WaitsForTurn, Group: g.id}
	case g.plan != nil && g.plan.progress == reserving:
		return Wait, obstacle.Obstacle{Cause: obstacle.LeftOut, Group: g.id}
	case g.started():
		if lacking := g.lacking(m); lacking != nil {
			return Wait, obstacle.Obstacle{Cause: obstacle.Surplus, Group: g.id, Detail: lacking.Short(g.census.SettledIn)}
		}
		return Alone, nil
	case g.plan != nil && g.plan.progress == committed:
		return Wait, obstacle.Obstacle{Cause: obstacle.Starting, Group: g.id}
	case g.plan == nil && g.holding > 0:
		return Wait, obstacle.Obstacle{Cause: obstacle.GivingBack, Group: g.id, Have: g.holding}
	case !g.quorum():
		return Wait, incomplete(g)
	case g.lead() != m:
		if g.attempts.block != nil {
			return Wait, g.attempts.block.reason
		}
		leader := "of another scheduler"
		if g.leader != nil {
			leader = g.leader.Name
		}
		return Wait, obstacle.Obstacle{Cause: obstacle.Represented, Group: g.id, Pod: leader}
	default:
		return Lead, nil
	}
}

// incomplete says how many members the group lacks.
func incomplete(g *group) obstacle.Reason {
	if g.note != "" {
		return obstacle.Text(g.note)
	}
	minimum := g.spec().Minimum
	return obstacle.Obstacle{Cause: obstacle.TooFewMembers, Group: g.id, Have: g.census.Existing(), Need: minimum.Total,
		Detail: minimum.Groups().Short(g.census.existingIn)}
}

// uninvited says why the leader may not plan now.
func uninvited(g *group) obstacle.Reason {
	if g.attempts.block != nil {
		return g.attempts.block.reason
	}
	return obstacle.Obstacle{Cause: obstacle.Uninvited, Group: g.id}
}
