package eviction

import "slices"

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
