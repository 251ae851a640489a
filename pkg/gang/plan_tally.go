package gang

// planTally counts the assignments of a plan, as it is asked for them with every member that reserves.
type planTally struct {
	// counted is set while the numbers are right.
	counted bool
	// ready counts the members that can be bound as soon as all can, roles and readyRoles those that have a role.
	ready             int
	roles, readyRoles map[string]int
}

// recount has the assignments counted again before they are asked for.
func (p *plan) recount() {
	if p != nil {
		p.tally.counted = false
	}
}

// counts reports whether the member is among those that were counted.
func (p *plan) counts(m *member) bool { return p != nil && p.tally.counted && p.node(m.UID) != "" }

// countReady takes note of a member that is ready now, or not any more.
func (p *plan) countReady(m *member, ready bool) {
	by := 1
	if !ready {
		by = -1
	}
	p.tally.ready += by
	if m.Role != "" {
		p.tally.readyRoles[m.Role] += by
	}
}

// tallied returns the counts of the group's plan.
func (g *group) tallied(p *plan) *planTally {
	t := &p.tally
	if t.counted {
		return t
	}
	*t = planTally{counted: true, roles: map[string]int{}, readyRoles: map[string]int{}}
	for uid := range p.assignments {
		m := g.members[uid]
		if m.Role != "" {
			t.roles[m.Role]++
		}
		if m.stage.ready() {
			p.countReady(m, true)
		}
	}
	return t
}

// serves reports whether the minimum is met when all members of the plan are bound.
func (g *group) serves(p *plan) bool {
	t := g.tallied(p)
	return g.metWith(len(p.assignments), t.roles)
}

// servesReady reports whether the minimum is met when those members of the plan are bound that are ready.
func (g *group) servesReady(p *plan) bool {
	t := g.tallied(p)
	return g.metWith(t.ready, t.readyRoles)
}

// metWith reports whether the minimum is met with more members; roles tells how many of them have a role.
func (g *group) metWith(more int, roles map[string]int) bool {
	return g.spec().Minimum.MetBy(g.census.settled()+more,
		func(role string) int { return g.census.settledIn(role) + roles[role] })
}

// ready counts the members of the plan that can be bound as soon as all can.
func (g *group) ready(p *plan) int { return g.tallied(p).ready }
