package eviction

import "slices"

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

// solution is a plan and what it costs.
type solution struct {
	plan Plan
	cost Cost
}

func newSearch(p *Problem) *search {
	s := &search{costs: costs{state: newState(prepare(p))}, within: make([]bool, len(p.Nodes))}
	s.reach, s.spread = make([]int, len(s.classes)), make([]int, len(s.units))
	return s
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

// solve looks for a cheap solution in the present domain and returns nil if it finds none: units go until the gang has
// room, and those come back without which it still does.
//
// The cost of a group counts once in shares and once in full, because both can mislead: in full, a group on many nodes
// is too dear for each of them; in shares, groups on nodes that have little in common are too cheap.
func (s *search) solve() *solution {
	if s.hopeless() {
		return nil
	}
	var best *solution
	for _, share := range []bool{true, false} {
		s.undo(0)
		s.share = share
		if s.arrange(true) {
			putBack(s)
			best = cheaper(best, s.solution())
		}
	}
	if best == nil {
		best = s.fromAll()
	}
	return best
}

// fromAll has all units go, whatever the rules, and puts back what it can. Members that take the room there is first
// may be in the way of others.
func (s *search) fromAll() *solution {
	s.undo(0)
	s.removeAll(highest)
	if !s.arrange(false) {
		return nil
	}
	putBack(s)
	if slices.ContainsFunc(s.goneSince(0), func(u int) bool { return !s.legal(u) }) {
		return nil
	}
	return s.solution()
}

// cheaper returns the cheaper of two solutions, the first of equal ones.
func cheaper(a, b *solution) *solution {
	if a == nil || b != nil && b.cost.Compare(a.cost) < 0 {
		return b
	}
	return a
}

// solution returns the present state as a solution.
func (s *search) solution() *solution {
	s.share = false
	return &solution{s.plan(), s.of(s.goneSince(0), 1)}
}
