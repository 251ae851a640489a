package eviction

import (
	"cmp"
	"slices"
)

// returning is the search for units that can stay.
type returning struct {
	*search
	// roomy are, by class, nodes that have room. Some may have none any more.
	roomy [][]int
}

// putBack puts back one unit after the other without which the gang can still start: the most important first, of
// equally important ones the one that would lose the most, then the larger.
func putBack(d *search) {
	s := returning{search: d, roomy: make([][]int, len(d.classes))}
	s.note(d.nodes)
	queue := s.goneSince(0)
	slices.SortFunc(queue, s.compare)
	for len(queue) > 0 {
		unit := queue[0]
		queue = queue[1:]
		start := len(s.trail)
		spare := s.putBack(unit)
		if !s.replace(unit) {
			s.undo(start)
			continue
		}
		if len(spare) > 0 {
			queue = append(queue, spare...)
			slices.SortFunc(queue, s.compare)
		}
		s.note(s.nodesOf(unit))
	}
}

func (s *returning) compare(a, b int) int {
	x, y := &s.units[a], &s.units[b]
	return cmp.Or(
		y.cost.compare(x.cost.rank),
		cmp.Compare(y.cost.lost, x.cost.lost),
		cmp.Compare(y.cost.milliPods, x.cost.milliPods),
		s.compareImportance(b, a),
	)
}

// note notes which of the nodes have room.
func (s *returning) note(nodes []int) {
	for class := range s.classes {
		for _, n := range nodes {
			if s.fits(class, n, 1) > 0 {
				s.roomy[class] = append(s.roomy[class], n)
			}
		}
	}
}

// nodesOf returns the nodes of the domain on which the unit has pods.
func (s *returning) nodesOf(unit int) []int {
	var nodes []int
	for _, part := range s.units[unit].parts {
		if s.within[part.node] {
			nodes = append(nodes, part.node)
		}
	}
	return nodes
}

// putBack puts a unit back. It leaves out, and returns, units inside it that are in the way.
func (s *returning) putBack(unit int) (spare []int) {
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
func (s *returning) replace(unit int) bool {
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
	return s.met()
}

// inTheWay reports whether the unit, which is back, takes what placed members need.
func (s *returning) inTheWay(unit int) bool {
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
func (s *returning) displace(node int) {
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
