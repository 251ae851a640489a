package eviction

import (
	"slices"

	"berth.dev/berth/pkg/gang/tree"
)

// search looks for the cheapest plan in one domain after the other.
type search struct {
	*state
	// nodes are those of the domain in which the gang is to be placed, and within tells them by index.
	nodes  []int
	within []bool
	// reach is, by class, how many members fit when all units are gone and no other class is placed.
	reach []int
	// most is the largest number of members that were placed together, in any domain.
	most int
	// spread is, by unit, on how many nodes of the domain it frees anything. share is set while the cost of a group counts
	// in equal shares for the nodes that its eviction helps.
	spread []int
	share  bool
	// roomy are, by class, nodes that have room while units come back. Some may have none any more.
	roomy [][]int
	// answer is where the sets are, if the gang is divided.
	answer *tree.Answer
}

// solution is a plan and what it costs.
type solution struct {
	plan Plan
	cost Cost
}

func newSearch(p *Problem) *search {
	s := &search{state: newState(prepare(p)), within: make([]bool, len(p.Nodes))}
	s.reach, s.spread, s.roomy = make([]int, len(s.classes)), make([]int, len(s.units)), make([][]int, len(s.classes))
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

// fit places what is needed in what is free, and reports whether it fits.
func (s *search) fit() bool {
	if s.Tree != nil {
		return s.arrangeSets()
	}
	return s.arrange(false)
}

// solve looks for a cheap solution in the present domain and returns nil if it finds none: units go until the gang has
// room, and those come back without which it still does.
//
// One pass counts the cost of a group in shares and one in full, because both can mislead: in full, a group on many
// nodes is too expensive for each of them; in shares, groups on nodes that have little in common are too cheap.
//
// In a divided gang, the best domain for a set depends on the domains of the others, and all of them on what is
// evicted. So all units up to a rank are evicted first, the lowest rank with which all sets find domains.
func (s *search) solve() *solution {
	if s.Tree != nil {
		return s.fromAll(s.ranks()...)
	}
	if s.hopeless() {
		return nil
	}
	var best *solution
	for _, share := range []bool{true, false} {
		s.undo(0)
		s.share = share
		if s.arrange(true) {
			s.putBack()
			best = cheaper(best, s.solution())
		}
	}
	if best == nil {
		// Members on free capacity may be in the way of others.
		best = s.fromAll(highest)
	}
	return best
}

// fromAll evicts all units up to a rank, ignoring budgets and minimums, and puts back what it can. It tries the ranks
// in turn until the result breaks no rule.
func (s *search) fromAll(limits ...rank) *solution {
	for _, limit := range limits {
		s.undo(0)
		s.removeAll(limit)
		if !s.fit() {
			continue
		}
		s.putBack()
		if !slices.ContainsFunc(s.goneSince(0), func(u int) bool { return !s.legal(u) }) {
			return s.solution()
		}
	}
	return nil
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
	return &solution{s.plan(), s.costOfUnits(s.goneSince(0), 1)}
}
