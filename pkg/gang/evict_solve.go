package gang

import (
	"cmp"
	"slices"
)

// evictSolution is a state of the search in which the gang can start.
type evictSolution struct {
	gone   []int
	placed []evictStep
	cost   evictionCost
}

// solve looks for the cheapest solution in the present domain and returns nil if it finds none.
//
// The cost of a group counts once in shares and once in full, because both can mislead: in full, a group on many nodes
// is too dear for each of them; in shares, groups on nodes that have little in common are too cheap. If budgets were used
// up too early, they are saved the next time.
func (s *evictSearch) solve() *evictSolution {
	if s.hopeless() {
		return nil
	}
	var best *evictSolution
	try := func(share, frugal bool) {
		s.reset()
		s.share, s.frugal = share, frugal
		if s.arrange(true) && s.freeWanted() {
			s.spare()
			if found := s.save(); best == nil || compareCosts(found.cost, 1, best.cost, 1) < 0 {
				best = found
			}
		}
	}
	try(true, false)
	if slices.ContainsFunc(s.units, func(u unit) bool { return u.group != (ID{}) }) {
		try(false, false)
	}
	if best == nil && len(s.spent) > 0 {
		try(true, true)
	}
	return s.exact(best)
}

// save returns the present state as a solution.
func (s *evictSearch) save() *evictSolution {
	a := &evictSolution{gone: s.goneUnits()}
	for _, i := range a.gone {
		a.cost.add(s.countsAs(i), 1000*int64(len(s.units[i].victims)))
	}
	for class := range s.placed {
		for _, n := range s.nodes {
			if members := s.placed[class][n]; members > 0 {
				a.placed = append(a.placed, evictStep{unit: -1, class: class, node: n, by: members})
			}
		}
	}
	return a
}

// goneUnits returns the units that are gone.
func (s *evictSearch) goneUnits() []int {
	var gone []int
	for _, t := range s.trail {
		if t.unit >= 0 && s.gone[t.unit] {
			gone = append(gone, t.unit)
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}

// load makes a solution the present state.
func (s *evictSearch) load(a *evictSolution) {
	s.reset()
	for _, i := range a.gone {
		s.do(evictStep{unit: i, by: 1})
	}
	for _, t := range a.placed {
		s.do(t)
	}
}

// countsAs is the priority with which the eviction of a unit counts.
func (s *evictSearch) countsAs(unit int) int32 {
	if whole := s.units[unit].whole; whole >= 0 && s.gone[whole] {
		unit = whole
	}
	return s.units[unit].priority
}

// compareSparing orders units in the order in which they are to be brought back: the most important first, of equally
// important ones the larger first, and the rest of a group before its surplus.
func (s *evictSearch) compareSparing(a, b int) int {
	ua, ub := &s.units[a], &s.units[b]
	return cmp.Or(
		cmp.Compare(ub.priority, ua.priority),
		cmp.Compare(len(ub.victims)+len(ub.surplus), len(ua.victims)+len(ua.surplus)),
		s.compareUnits(b, a),
	)
}

// spare brings back one unit after the other without which the gang can still start: the most important first.
func (s *evictSearch) spare() {
	chosen := s.goneUnits()
	slices.SortFunc(chosen, s.compareSparing)
	roomy := make([][]int, len(s.classes))
	for class := range s.classes {
		for _, n := range s.nodes {
			if s.roomIn(s.left, nil, class, n, 1) > 0 {
				roomy[class] = append(roomy[class], n)
			}
		}
	}
	for _, unit := range chosen {
		if whole := s.units[unit].whole; !s.gone[unit] || whole >= 0 && s.gone[whole] {
			continue
		}
		start := len(s.trail)
		if !s.bringBack(unit, roomy) || !s.bringBackEnough(unit, roomy) {
			s.undo(start)
			continue
		}
		for _, part := range s.units[unit].parts {
			for class := range s.classes {
				if s.within[part.node] && s.roomIn(s.left, nil, class, part.node, 1) > 0 {
					roomy[class] = append(roomy[class], part.node)
				}
			}
		}
	}
}

// bringBackEnough brings back members with the rest of their group until it has its minimum, the most important first and
// only such as the gang does not need to go, and reports whether it has.
func (s *evictSearch) bringBackEnough(rest int, roomy [][]int) bool {
	u := &s.units[rest]
	members := slices.Clone(u.surplus)
	slices.SortFunc(members, s.compareSparing)
	for _, member := range members {
		if !s.overspends(u) {
			return true
		}
		if start := len(s.trail); !s.bringBack(member, roomy) {
			s.undo(start)
		}
	}
	return !s.overspends(u)
}

// overspends reports whether more is taken from one of the unit's budgets than it allows.
func (s *evictSearch) overspends(u *unit) bool {
	return slices.ContainsFunc(u.uses, func(use budgetUse) bool { return s.spent[use.budget] > s.budgets[use.budget] })
}

// bringBack brings a unit back, moves the members that it displaces to nodes that have room, which are among roomy, and
// reports whether the gang can still start.
func (s *evictSearch) bringBack(unit int, roomy [][]int) bool {
	s.do(evictStep{unit: unit, by: -1})
	if s.lacking() >= 0 {
		return false
	}
	before := slices.Clone(s.count)
	var nodes []int
	for _, part := range s.units[unit].parts {
		if s.within[part.node] {
			nodes = append(nodes, part.node)
			s.displace(part.node)
		}
	}
	s.displaceHolders()
	for _, class := range slices.Backward(s.easiest) {
		want := before[class] - s.count[class]
		want -= s.fill(class, want, nodes)
		s.fillFirst(class, want, roomy[class])
	}
	for _, class := range s.easiest {
		want := s.wanting(class)
		want -= s.fill(class, want, nodes)
		s.fillFirst(class, want, roomy[class])
	}
	return s.met()
}

// displace takes members off a node until the others have enough room.
func (s *evictSearch) displace(node int) {
	left := s.left[node*s.dims : (node+1)*s.dims]
	for _, class := range s.easiest {
		for s.placed[class][node] > 0 && overcommits(s.classes[class].demand, left) {
			s.assign(class, node, -1)
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

// fillFirst places up to want members of a class on the first of the nodes that have room.
func (s *evictSearch) fillFirst(class, want int, nodes []int) {
	want = min(want, s.classes[class].count-s.count[class])
	for _, n := range nodes {
		if want <= 0 {
			return
		}
		if members := s.roomFor(class, n, want); members > 0 {
			s.assign(class, n, members)
			want -= members
		}
	}
}
