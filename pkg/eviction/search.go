package eviction

import (
	"slices"
)

// search looks for the cheapest plan in one domain after the other.
type search struct {
	*state
	// nodes is the present domain, and within tells its nodes by index.
	nodes  []int
	within []bool
	// reach is, by class, for how many members the domain has room when all units are gone, if there are no others.
	reach []int
	// spread is, by unit, on how many nodes of the domain it frees anything. share is set while the cost of a group counts
	// in equal shares for the nodes that its eviction helps.
	spread []int
	share  bool
	// frugal is set while units that take from budgets come last.
	frugal bool
	// kept is a unit that has to stay, -1 for none.
	kept int
	// most is the largest number of members that were placed together.
	most int
	// buffers are memory that offers use again and again.
	buffers struct {
		room         Vector
		found, picks []candidate
	}
}

// solution is a state in which the gang can start.
type solution struct {
	units  []int
	placed []step
	cost   Cost
}

func newSearch(p *Problem) *search {
	s := &search{state: newState(prepare(p)), within: make([]bool, len(p.Nodes)), kept: -1}
	s.reach, s.spread = make([]int, len(s.classes)), make([]int, len(s.units))
	return s
}

// enter starts the search afresh in a domain.
func (s *search) enter(nodes []int) {
	s.undo(0)
	s.removeAll()
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

// save returns the present state as a solution.
func (s *search) save() *solution {
	a := &solution{units: s.goneSince(0)}
	s.share, s.frugal = false, false
	a.cost = s.cost(a.units, 1)
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

// goneSince returns the units that have gone since the trail had a length.
func (s *search) goneSince(start int) []int {
	var gone []int
	for _, t := range s.trail[start:] {
		if t.unit >= 0 && s.gone[t.unit] {
			gone = append(gone, t.unit)
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}
