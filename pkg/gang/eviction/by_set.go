package eviction

import (
	"slices"

	"berth.dev/berth/pkg/gang/tree"
)

// arrangeSets places what is needed of all sets in what is free, in domains that cost less for each member first, and
// reports whether it fits. If not, nothing has changed.
func (s *search) arrangeSets() bool {
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
func (s *search) cheapest(level int, nodes []tree.Node) []int {
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
		costs[d] = s.costOfUnits(slices.Compact(units[d]), 1)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return compareCosts(costs[a], max(room[a], 1), costs[b], max(room[b], 1))
	})
	return order
}

// refit places all sets again, and reports whether they fit. If not, the caller has to undo.
func (s *search) refit() bool {
	before := s.answer
	for class := range s.placed {
		for n, members := range s.placed[class] {
			if members > 0 {
				s.do(step{unit: -1, class: class, node: n, by: -members})
			}
		}
	}
	if s.arrangeSets() {
		return true
	}
	s.answer = before
	return false
}
