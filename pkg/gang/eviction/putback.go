package eviction

import (
	"cmp"
	"math"
	"slices"
)

// mostRefits bounds how often all sets are placed again to put a unit back: each time takes milliseconds in a large
// cluster.
const mostRefits = 48

// putBack puts back every unit whose eviction the gang does not need: the most important first, among equals the one
// that would lose the most, then the larger. If the gang is divided, it first puts back units that are not in the way
// of a placed member, then units without which the sets find other nodes.
func (s *search) putBack() {
	if s.Tree != nil {
		s.putBackAll(math.MaxInt, func(unit int) bool { return !s.inTheWay(unit) })
		s.putBackAll(mostRefits, func(int) bool { return s.refit() })
		return
	}
	clear(s.roomy)
	s.note(s.nodes)
	s.putBackAll(math.MaxInt, s.replace)
}

// putBackAll tries to put back up to most units. fits reports whether the gang can still start when a unit is back.
func (s *search) putBackAll(most int, fits func(unit int) bool) {
	queue := s.goneSince(0)
	slices.SortFunc(queue, s.compareReturning)
	for ; len(queue) > 0 && most > 0; most-- {
		unit, start := queue[0], len(s.trail)
		queue = queue[1:]
		spare := s.putBackOne(unit)
		if !fits(unit) {
			s.undo(start)
			continue
		}
		queue = append(queue, spare...)
		if len(spare) > 0 && s.Tree == nil { // of a divided gang, those that were inside others come last
			slices.SortFunc(queue, s.compareReturning)
		}
	}
}

// compareReturning orders units, those first that are to come back first.
func (s *search) compareReturning(a, b int) int {
	x, y := &s.units[a], &s.units[b]
	return cmp.Or(
		y.cost.compare(x.cost.rank),
		cmp.Compare(y.cost.lost, x.cost.lost),
		cmp.Compare(y.cost.milliPods, x.cost.milliPods),
		s.compareImportance(b, a),
	)
}

// note notes which of the nodes have room.
func (s *search) note(nodes []int) {
	for class := range s.classes {
		for _, n := range nodes {
			if s.fits(class, n, 1) > 0 {
				s.roomy[class] = append(s.roomy[class], n)
			}
		}
	}
}

// nodesOf returns the nodes of the domain on which the unit has pods.
func (s *search) nodesOf(unit int) []int {
	var nodes []int
	for _, part := range s.units[unit].parts {
		if s.within[part.node] {
			nodes = append(nodes, part.node)
		}
	}
	return nodes
}

// putBackOne puts a unit back. It leaves out, and returns, units inside it that are in the way.
func (s *search) putBackOne(unit int) (spare []int) {
	s.do(step{unit: unit, by: -1})
	for _, in := range s.units[unit].inside {
		if s.inTheWay(in) && s.remove(in) {
			spare = append(spare, in)
		}
	}
	return slices.DeleteFunc(spare, func(u int) bool { return !s.gone[u] }) // one around it has gone since
}

// replace moves the members that a unit displaces to nodes that have room, and reports whether the gang can still
// start.
func (s *search) replace(unit int) bool {
	before, nodes := slices.Clone(s.count), s.nodesOf(unit)
	for _, n := range nodes {
		s.displace(n)
	}
	refill := func(class, want int) {
		for _, n := range slices.Concat(nodes, s.roomy[class]) {
			if want <= 0 {
				break
			}
			want -= s.assign(class, n, want)
		}
	}
	for _, class := range slices.Backward(s.easiest) {
		refill(class, before[class]-s.count[class])
	}
	for _, class := range s.easiest {
		refill(class, s.wanting(class))
	}
	if !s.met() {
		return false
	}
	s.note(nodes)
	return true
}

// inTheWay reports whether the unit, which is back, takes what placed members need.
func (s *search) inTheWay(unit int) bool {
	for _, part := range s.units[unit].parts {
		for class := range s.classes {
			if s.placed[class][part.node] > 0 && overcommits(s.classes[class].Demand, s.room(part.node)) {
				return true
			}
		}
	}
	return false
}

// displace takes members off a node until the others have enough room.
func (s *search) displace(node int) {
	for _, class := range s.easiest {
		for s.placed[class][node] > 0 && overcommits(s.classes[class].Demand, s.room(node)) {
			s.do(step{unit: -1, class: class, node: node, by: -1})
		}
	}
}

// overcommits reports whether less than nothing is left of a resource that is demanded.
func overcommits(demand, left Vector) bool {
	for r, amount := range demand {
		if amount > 0 && left[r] < 0 {
			return true
		}
	}
	return false
}
