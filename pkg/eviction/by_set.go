package eviction

import (
	"math"
	"slices"

	"berth.dev/berth/pkg/tree"
)

// setSearch looks for a cheap plan for a gang with sets.
//
// Which domain is the best for a set depends on those of the others, and all of them on who has gone. So all units go
// up to a rank, the lowest with which all sets find domains; domains that cost less for each member are filled first.
// Then units come back without which the sets find room as well.
type setSearch struct {
	*search
	answer *tree.Answer
}

func (s *setSearch) choose() (Plan, bool) {
	s.enter(s.allNodes())
	if s.arrange() {
		return s.plan(), true
	}
	for _, limit := range s.ranks() {
		s.undo(0)
		s.removeAll(limit)
		if !s.arrange() {
			continue
		}
		s.putBack()
		if !slices.ContainsFunc(s.goneSince(0), func(u int) bool { return !s.legal(u) }) {
			return s.plan(), true
		}
	}
	return Plan{}, false
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
	for _, classes := range s.answer.Nodes {
		for class, nodes := range classes {
			for _, n := range nodes {
				s.do(step{unit: -1, class: class, node: n, by: 1})
			}
		}
	}
	return true
}

// cheapest returns the domains of a level in the order of what their units cost that have gone, for each member of the
// class that is the hardest to place for which they have room.
func (s *setSearch) cheapest(level int, nodes []tree.Node) []int {
	room, units, costs := map[int]int{}, map[int][]int{}, map[int]Cost{}
	var order []int
	hardest := s.easiest[len(s.easiest)-1]
	for n, index := range s.Tree.Levels[level] {
		if index == tree.None {
			continue
		}
		if _, known := room[index]; !known {
			order = append(order, index)
		}
		room[index] += nodes[n].Slots[hardest]
		for _, part := range s.onNode[n] {
			if s.gone[part.unit] {
				units[index] = append(units[index], part.unit)
			}
		}
	}
	s.share = false
	for _, d := range order {
		slices.Sort(units[d])
		costs[d] = s.of(slices.Compact(units[d]), 1)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return compareCosts(costs[a], max(room[a], 1), costs[b], max(room[b], 1))
	})
	return order
}

// mostRefits bounds how many times all sets are placed again for a unit that comes back: each takes milliseconds in a
// large cluster.
const mostRefits = 48

// putBack puts back one unit after the other, the most important first: those that take nothing of what was found, and
// then those without which the sets find room elsewhere.
func (s *setSearch) putBack() {
	back := returning{search: s.search}
	again := func(most int, fits func(unit int) bool) {
		queue := s.goneSince(0)
		slices.SortFunc(queue, back.compare)
		for ; len(queue) > 0 && most > 0; most-- {
			unit, start := queue[0], len(s.trail)
			queue = queue[1:]
			if spare := back.putBack(unit); fits(unit) {
				queue = append(queue, spare...)
			} else {
				s.undo(start)
			}
		}
	}
	again(math.MaxInt, func(unit int) bool { return !back.inTheWay(unit) })
	again(mostRefits, func(int) bool { return s.refit() })
}

// refit places all sets again, and reports whether they fit. If not, the caller has to undo.
func (s *setSearch) refit() bool {
	before := s.answer
	for class := range s.placed {
		for n, members := range s.placed[class] {
			if members > 0 {
				s.do(step{unit: -1, class: class, node: n, by: -members})
			}
		}
	}
	if s.arrange() {
		return true
	}
	s.answer = before
	return false
}
