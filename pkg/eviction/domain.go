package eviction

// search looks for the cheapest plan in one domain after the other.
type search struct {
	costs
	// nodes are those of the domain in which the gang is to be placed, and within tells them by index.
	nodes  []int
	within []bool
	// reach is, by class, for how many members it has room when all units are gone, if there are no others.
	reach []int
	// most is the largest number of members that were placed together, in any domain.
	most int
}

// enter makes other nodes the domain, and starts afresh.
func (s *search) enter(nodes []int) {
	s.undo(0)
	s.removeAll(highest)
	s.nodes = s.nodes[:0]
	clear(s.within)
	clear(s.spread)
	clear(s.reach)
	for _, n := range nodes {
		if s.within[n] {
			continue
		}
		s.within[n] = true
		s.nodes = append(s.nodes, n)
		for _, part := range s.onNode[n] {
			s.spread[part.unit]++
		}
		for class := range s.classes {
			s.reach[class] += s.fits(class, n, s.classes[class].Count-s.reach[class])
		}
	}
	s.undo(0)
}

// hopeless reports whether the gang cannot start in the domain even if all units go. Each class counts as if it had the
// domain for itself, so the reverse is not certain with several classes.
func (s *search) hopeless() bool {
	total, byRole := 0, map[string]int{}
	for class, members := range s.reach {
		total += members
		byRole[s.classes[class].Role] += members
	}
	if s.Need.MetBy(total, func(role string) int { return byRole[role] }) {
		return false
	}
	s.most = max(s.most, min(total, s.Need.Members()-1))
	return true
}
