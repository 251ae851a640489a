package gang

// census counts the members of a group. It decides nothing: quorum and start are asked of it with a Minimum.
type census struct {
	states [states]int
	// roles counts by state the members that have a role.
	roles map[string][states]int
	// running counts bound members that run, foreign pending ones that another scheduler places, priorities and
	// precedences all members by what they have, labelled those that carry a minimum themselves by what it is.
	running, foreign int

	priorities  map[int32]int
	precedences map[Precedence]int
	labelled    map[int]int
}

func newCensus() census {
	return census{roles: map[string][states]int{}, priorities: map[int32]int{}, precedences: map[Precedence]int{},
		labelled: map[int]int{}}
}

// count adds the member as it is observed, by one, or takes it out, by minus one.
func (c *census) count(m *Member, by int) {
	c.states[m.State] += by
	if m.Role != "" {
		of := c.roles[m.Role]
		of[m.State] += by
		if c.roles[m.Role] = of; of == [states]int{} {
			delete(c.roles, m.Role)
		}
	}
	if m.Running {
		c.running += by
	}
	if !m.Ours && m.State == Pending {
		c.foreign += by
	}
	tally(c.priorities, m.Priority, by)
	tally(c.precedences, m.Precedence, by)
	if m.Minimum > 0 {
		tally(c.labelled, m.Minimum, by)
	}
}

func tally[K comparable](counts map[K]int, key K, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}

// settled is the number of members that need no node any more: they have one or have finished well.
func (c *census) settled() int { return c.states[Bound] + c.states[Succeeded] }

func (c *census) settledIn(role string) int {
	return c.roles[role][Bound] + c.roles[role][Succeeded]
}

// existing is the number of members that are settled or can be placed.
func (c *census) existing() int { return c.settled() + c.states[Pending] }

func (c *census) existingIn(role string) int {
	return c.settledIn(role) + c.roles[role][Pending]
}

// met reports whether the minimum has been placed.
func (c *census) met(m Minimum) bool { return m.MetBy(c.settled(), c.settledIn) }

// metWith reports whether the minimum is met with more members; roles tells how many of them have a role.
func (c *census) metWith(m Minimum, more int, roles map[string]int) bool {
	return m.MetBy(c.settled()+more, func(role string) int { return c.settledIn(role) + roles[role] })
}

// spares reports whether what is left is of use when members are lost, which are counted by role.
func (c *census) spares(m Minimum, lost map[string]int) bool {
	bound := map[string]int{}
	for role, states := range c.roles {
		bound[role] = states[Bound]
	}
	return m.Spares(c.settled(), lost, bound, c.settledIn)
}

// quorum reports whether enough members exist to start.
func (c *census) quorum(m Minimum) bool { return m.MetBy(c.existing(), c.existingIn) }

// priority is the lowest of any member: a group is as important as its least member.
func (c *census) priority() int32 {
	lowest, first := int32(0), true
	for p := range c.priorities {
		if first || p < lowest {
			lowest, first = p, false
		}
	}
	return lowest
}

// precedence is that of the member that may wait longest: a group is as urgent as its least member.
func (c *census) precedence() Precedence {
	var last Precedence
	for p := range c.precedences {
		last.Ages = last.Ages || p.Ages
		last.Wait = max(last.Wait, p.Wait)
	}
	return last
}

// largestLabel is the largest minimum that members carry themselves; 0 if none does.
func (c *census) largestLabel() (largest int) {
	for n := range c.labelled {
		largest = max(largest, n)
	}
	return largest
}
