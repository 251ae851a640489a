package eviction

import "slices"

// search looks for the cheapest plan in one domain after the other.
type search struct{ domain }

// solution is a state in which the gang can start.
type solution struct {
	units  []int
	placed []step
	cost   Cost
}

func newSearch(p *Problem) *search {
	s := &search{domain{costs: costs{state: newState(prepare(p)), kept: -1}, within: make([]bool, len(p.Nodes))}}
	s.reach, s.spread = make([]int, len(s.classes)), make([]int, len(s.units))
	return s
}

// improveWork bounds how many nodes one call of Choose looks at before it looks for no better plan, which takes a few
// milliseconds.
const improveWork = 1 << 15

// solve looks for the cheapest solution in the present domain and returns nil if it finds none.
//
// Of few nodes it finds the cheapest there is in nearly all cases, because it tries again with other units for as long
// as that helps.
func (s *search) solve() *solution {
	if s.hopeless() {
		return nil
	}
	best := s.try(-1)
	for s.work < improveWork {
		better := s.improve(best)
		if better == best {
			break
		}
		best = better
	}
	return best
}

// improve tries again with a unit that goes first, or with one kept that goes so far, or both. It returns the first
// solution that is cheaper, or the given one.
func (s *search) improve(best *solution) *solution {
	defer func() { s.kept = -1 }()
	keep := []int{-1}
	if best != nil {
		keep = append(keep, best.units...)
	}
	for first := -1; first < len(s.units); first++ {
		for _, s.kept = range keep {
			if found := cheaper(best, s.try(first)); found != best || s.work >= improveWork {
				return found
			}
		}
	}
	return best
}

// try looks for a solution in which the unit goes first, unless that is -1.
//
// The cost of a group counts once in shares and once in full, because both can mislead: in full, a group on many nodes
// is too dear for each of them; in shares, groups on nodes that have little in common are too cheap. If budgets were
// used up too early, they are saved the next time.
func (s *search) try(first int) *solution {
	var best *solution
	for _, v := range []struct{ share, frugal bool }{{true, false}, {false, false}, {true, true}} {
		if best != nil && (v.frugal || !s.anyWhole(best)) || v.frugal && len(s.Budgets) == 0 {
			continue
		}
		s.undo(0)
		s.share, s.frugal = v.share, v.frugal
		if first >= 0 {
			s.remove(first)
		}
		if s.arrange(true) && s.freeWanted() {
			putBack(&s.domain)
			best = cheaper(best, s.save())
		}
	}
	return best
}

// anyWhole reports whether a group goes as a whole.
func (s *search) anyWhole(a *solution) bool {
	return slices.ContainsFunc(a.units, func(u int) bool { return s.units[u].whole })
}

// cheaper returns the cheaper of two solutions, the first of equal ones.
func cheaper(a, b *solution) *solution {
	if a == nil || b != nil && compareCosts(b.cost, 1, a.cost, 1) < 0 {
		return b
	}
	return a
}

// save returns the present state as a solution.
func (s *search) save() *solution {
	a := &solution{units: s.goneSince(0)}
	s.share, s.frugal = false, false
	a.cost = s.of(a.units, 1)
	for class := range s.placed {
		for _, n := range s.nodes {
			if members := s.placed[class][n]; members > 0 {
				a.placed = append(a.placed, step{unit: -1, class: class, node: n, by: members})
			}
		}
	}
	return a
}

// load makes a solution the present state.
func (s *search) load(a *solution) {
	s.undo(0)
	for _, u := range a.units {
		s.do(step{unit: u, by: 1})
	}
	for _, t := range a.placed {
		s.do(t)
	}
}
