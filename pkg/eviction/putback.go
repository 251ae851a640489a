package eviction

import (
	"cmp"
	"slices"
)

// putBack puts back one unit after the other without which the gang can still start: the most important first, of equally
// important ones the larger first.
func (s *search) putBack() {
	queue := s.goneSince(0)
	order := func(a, b int) int {
		x, y := &s.units[a], &s.units[b]
		return cmp.Or(cmp.Compare(y.priority, x.priority), cmp.Compare(len(y.victims), len(x.victims)), s.compareImportance(b, a))
	}
	slices.SortFunc(queue, order)
	roomy := make([][]int, len(s.classes))
	note := func(nodes []int) {
		for class := range s.classes {
			for _, n := range nodes {
				if s.within[n] && s.fits(class, n, 1) > 0 {
					roomy[class] = append(roomy[class], n)
				}
			}
		}
	}
	note(s.nodes)
	missing := s.missing()
	for len(queue) > 0 {
		unit := queue[0]
		queue = queue[1:]
		start := len(s.trail)
		var spare []int
		s.noting(missing, unit, func() { spare = s.putBackOne(unit) })
		if lacks(missing) || !s.replace(unit, roomy) {
			s.noting(missing, unit, func() { s.undo(start) })
			continue
		}
		if len(spare) > 0 {
			queue = append(queue, spare...)
			slices.SortFunc(queue, order)
		}
		var nodes []int
		for _, part := range s.units[unit].parts {
			nodes = append(nodes, part.node)
		}
		note(nodes)
	}
}

// putBackOne puts a unit back. Of a whole group it leaves out, and returns, spare members that are in the way.
func (s *search) putBackOne(unit int) (spare []int) {
	s.do(step{unit: unit, by: -1})
	if u := &s.units[unit]; u.whole {
		for _, member := range s.groups[u.group].spare {
			if s.inTheWay(member) && s.remove(member) {
				spare = append(spare, member)
			}
		}
	}
	return spare
}

// replace moves the members that a unit displaces to nodes that have room, which are among roomy, and reports whether the
// gang can still start.
func (s *search) replace(unit int, roomy [][]int) bool {
	before := slices.Clone(s.count)
	var nodes []int
	for _, part := range s.units[unit].parts {
		if s.within[part.node] {
			nodes = append(nodes, part.node)
			s.displace(part.node)
		}
	}
	s.displaceHolders()
	refill := func(class, want int) {
		for _, n := range slices.Concat(nodes, roomy[class]) {
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
func (s *search) inTheWay(unit int) bool {
	for _, part := range s.units[unit].parts {
		for class := range s.classes {
			if s.placed[class][part.node] > 0 && overcommits(s.classes[class].Demand, s.room(part.node)) {
				return true
			}
		}
	}
	for pool, amount := range s.units[unit].holds {
		if amount > 0 && s.pools[pool] < 0 {
			return true
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

// displaceHolders takes members off nodes until no pool is overcommitted.
func (s *search) displaceHolders() {
	for pool := range s.pools {
		for _, class := range s.easiest {
			for _, n := range s.nodes {
				for s.pools[pool] < 0 && s.classes[class].Asks[pool] > 0 && s.placed[class][n] > 0 && s.Pools[pool].covers(n) {
					s.do(step{unit: -1, class: class, node: n, by: -1})
				}
			}
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
