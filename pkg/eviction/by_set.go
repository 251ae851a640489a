package eviction

import (
	"slices"
	"sort"

	"berth.dev/berth/pkg/tree"
)

// mostImprovements bounds how many times it is tried whether a gang with sets can do with one unit less.
const mostImprovements = 48

// setSearch looks for a cheap plan for a gang with sets.
//
// Which domain is the best for a set depends on those of the others, and all of them on who has gone. So units go in
// the order of their cost until all sets find domains, and none of a higher rank than has to; domains that cost less
// for each member are filled first. Then units come back that take nothing of what was found, and it is tried whether
// the sets find room with one more of them back.
type setSearch struct {
	*search
	answer *tree.Answer
}

// setSolution is a state in which all sets that are needed have room.
type setSolution struct {
	*solution
	answer *tree.Answer
}

func (s *setSearch) choose() (Plan, bool) {
	all := make([]int, len(s.Nodes))
	for n := range all {
		all[n] = n
	}
	s.enter(all)
	if short := newShortage(s.state); !short.any() && s.arrange() {
		return s.plan(), true
	}
	best := s.cheapestOrder()
	if best == nil {
		best = s.fromAll()
	}
	if best == nil {
		return Plan{}, false
	}
	best = s.improve(best)
	s.load(best.solution)
	s.answer = best.answer
	return s.plan(), true
}

// cheapestOrder has units go in the order of their cost until all sets find domains; nil if rules keep them from it.
func (s *setSearch) cheapestOrder() *setSolution {
	order := make([]int, len(s.units))
	for u := range order {
		order[u] = u
	}
	slices.SortFunc(order, func(a, b int) int { return (&returning{domain: &s.domain}).compare(b, a) })
	enough := func(n int) bool {
		s.undo(0)
		for _, u := range order[:n] {
			s.remove(u)
		}
		return s.arrange() && s.freeWanted()
	}
	if !enough(len(order)) {
		return nil
	}
	least := sort.Search(len(order), enough)
	enough(least)
	best := s.putBack()
	// Others of the same rank may be in the way of fewer.
	last := s.units[order[max(least-1, 0)]].cost.rank
	alike := sort.Search(len(order), func(n int) bool { return s.units[order[n]].cost.compare(last) > 0 })
	if enough(alike) {
		if found := s.putBack(); cheaper(best.solution, found.solution) == found.solution {
			best = found
		}
	}
	return best
}

// fromAll has all units go, whatever the rules, and puts back what it can. In the order of their cost, units may use up
// what the budgets and the groups allow before those are looked at that are in the way.
func (s *setSearch) fromAll() *setSolution {
	s.undo(0)
	s.removeAll()
	if short := newShortage(s.state); short.any() || !s.arrange() {
		return nil
	}
	found := s.putBack()
	if slices.ContainsFunc(found.units, func(u int) bool { return !s.legal(u) }) {
		return nil
	}
	return found
}

// plan describes the state of the search.
func (s *setSearch) plan() Plan {
	plan := s.search.plan()
	plan.Sets = s.answer
	return plan
}

// arrange places what is needed of all sets in what is free, and reports whether it fits. If not, nothing has changed.
func (s *setSearch) arrange() bool {
	p := tree.Problem{Sets: s.Tree.Sets, Levels: s.Tree.Levels, Nodes: make([]tree.Node, len(s.Nodes)),
		Order: map[int][]int{}}
	for c := range s.classes {
		p.Asks = append(p.Asks, s.classes[c].Demand)
	}
	for n := range s.Nodes {
		node := &p.Nodes[n]
		node.Free = slices.Clone(s.freed(n))
		node.Slots = make([]int, len(s.classes))
		for c := range s.classes {
			node.Slots[c] = s.fits(c, n, s.classes[c].Count)
		}
	}
	for level := range p.Levels {
		p.Order[level] = s.cheapest(level, p.Nodes)
	}
	if s.answer = p.Least(); s.answer == nil {
		return false
	}
	start := len(s.trail)
	for _, classes := range s.answer.Nodes {
		for class, nodes := range classes {
			for _, n := range nodes {
				s.do(step{unit: -1, class: class, node: n, by: 1})
			}
		}
	}
	for pool, left := range s.pools {
		if left < 0 && slices.ContainsFunc(s.classes, func(c Class) bool { return c.Asks[pool] > 0 && c.Count > 0 }) {
			s.undo(start)
			return false
		}
	}
	return true
}

// cheapest returns the domains of a level in the order of what their units cost that have gone, for each member of the
// class that is the hardest to place for which they have room.
func (s *setSearch) cheapest(level int, nodes []tree.Node) []int {
	type domain struct {
		index, room int
		units       []int
		cost        Cost
	}
	var all []domain
	at := map[int]int{}
	hardest := s.easiest[len(s.easiest)-1]
	for n, index := range s.Tree.Levels[level] {
		if index == tree.None {
			continue
		}
		d, known := at[index]
		if !known {
			d = len(all)
			at[index] = d
			all = append(all, domain{index: index})
		}
		all[d].room += nodes[n].Slots[hardest]
		for _, part := range s.onNode[n] {
			if s.gone[part.unit] {
				all[d].units = append(all[d].units, part.unit)
			}
		}
	}
	s.share, s.frugal = false, false
	for d := range all {
		slices.Sort(all[d].units)
		all[d].cost = s.of(slices.Compact(all[d].units), 1)
	}
	slices.SortStableFunc(all, func(a, b domain) int {
		return compareCosts(a.cost, max(a.room, 1), b.cost, max(b.room, 1))
	})
	order := make([]int, len(all))
	for i := range all {
		order[i] = all[i].index
	}
	return order
}

// putBack puts back one unit after the other that takes nothing of what was found, the most important first, and
// returns what is left.
func (s *setSearch) putBack() *setSolution {
	back := returning{domain: &s.domain}
	queue, short := s.goneSince(0), newShortage(s.state)
	slices.SortFunc(queue, back.compare)
	for len(queue) > 0 {
		unit, start := queue[0], len(s.trail)
		queue = queue[1:]
		var spare []int
		if short.after(unit, func() { spare = back.putBack(unit) }) || back.inTheWay(unit) {
			short.after(unit, func() { s.undo(start) })
			continue
		}
		queue = append(queue, spare...)
	}
	return &setSolution{s.save(), s.answer}
}

// improve tries whether the sets find room with one unit back, the most important first, and again with what is left.
func (s *setSearch) improve(best *setSolution) *setSolution {
	back := returning{domain: &s.domain}
	kept := map[int]bool{}
	for range mostImprovements {
		slices.SortFunc(best.units, back.compare)
		next := slices.IndexFunc(best.units, func(u int) bool { return !kept[u] })
		if next < 0 {
			break
		}
		unit := best.units[next]
		kept[unit] = true
		s.undo(0)
		for _, u := range best.units {
			if u != unit {
				s.remove(u)
			}
		}
		if !s.arrange() || !s.freeWanted() {
			continue
		}
		if found := s.putBack(); cheaper(best.solution, found.solution) == found.solution {
			best = found
		}
	}
	return best
}
