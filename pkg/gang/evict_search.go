package gang

import (
	"cmp"
	"slices"
)

// search is the state of the search for victims: which units are gone, and where members are placed.
type search struct {
	p       *EvictProblem
	dims    int
	classes []searchClass
	// easiest holds the classes in ascending order of the part of the cluster that one member takes.
	easiest []int
	units   []unit
	// importance holds the units, the least important first; parts holds, by node, what each of them frees there, in the
	// same order.
	importance []int
	parts      [][]*part
	// initial is what the nodes have free before any eviction.
	initial []int64

	// nodes is the present domain, and within tells its nodes by index.
	nodes  []int
	within []bool
	// spread is, by unit, on how many nodes of the domain it frees anything.
	spread []int
	// share is set while the cost of a group counts in equal shares for the nodes that its eviction helps.
	share bool
	// frugal is set while units that take from budgets come last.
	frugal bool

	// room is what the nodes have free after the evictions, left what remains of that after placement; both by node and
	// resource.
	room, left []int64
	// placed is the number of members by class and node, count by class, byRole by role and total in all.
	placed [][]int
	count  []int
	byRole map[string]int
	total  int
	gone   []bool
	// lost is, by the rest of a group, how much of its surplus is gone.
	lost []int
	// spent is the number of evictions by budget.
	spent []int
	// free is the sum of room over all nodes, where room that is below zero counts as zero.
	free Vector
	// offered counts how often the offer of a node was drawn up.
	offered []int
	// most is the largest number of members that were placed together.
	most int
	// visits is how many nodes the search of every choice may still look at.
	visits int
	// trail lists the changes, so that the latest can be reversed.
	trail []step

	work workspace
}

// searchClass is a class of members with its demand brought to the length of all vectors.
type searchClass struct {
	demand Vector
	count  int
	role   string
	fits   []bool
}

func newSearch(p *EvictProblem, visits int) *search {
	s := &search{p: p, visits: visits, dims: len(p.Wanted), byRole: map[string]int{}, placed: make([][]int, len(p.Classes))}
	for _, c := range p.Classes {
		s.dims = max(s.dims, len(c.Demand))
	}
	for _, c := range p.Classes {
		demand := make(Vector, s.dims)
		for r, amount := range c.Demand {
			demand[r] = max(amount, 0)
		}
		s.classes = append(s.classes, searchClass{demand: demand, count: max(c.Count, 0), role: c.Role, fits: c.Fits})
	}
	s.initial = make([]int64, len(p.Nodes)*s.dims)
	for n := range p.Nodes {
		copy(s.initial[n*s.dims:(n+1)*s.dims], p.Nodes[n].Free)
	}
	s.units = p.units(s.dims)
	s.rank()
	s.room, s.left = make([]int64, len(s.initial)), make([]int64, len(s.initial))
	for c := range s.classes {
		s.placed[c] = make([]int, len(p.Nodes))
	}
	s.count = make([]int, len(s.classes))
	s.gone, s.lost, s.spread = make([]bool, len(s.units)), make([]int, len(s.units)), make([]int, len(s.units))
	s.spent = make([]int, len(p.Budgets))
	s.offered, s.within = make([]int, len(p.Nodes)), make([]bool, len(p.Nodes))
	s.free, s.work.short, s.work.freed = make(Vector, s.dims), make(Vector, s.dims), make(Vector, s.dims)
	return s
}

// rank orders units by importance and classes by how hard they are to place.
func (s *search) rank() {
	s.importance = make([]int, len(s.units))
	parts := make([]int, len(s.p.Nodes))
	capacity := make([]float64, s.dims)
	for i := range s.units {
		s.importance[i] = i
		for k := range s.units[i].parts {
			part := &s.units[i].parts[k]
			parts[part.node]++
			for r, amount := range part.frees {
				capacity[r] += float64(max(amount, 0))
			}
		}
	}
	slices.SortFunc(s.importance, func(a, b int) int { return s.compareUnits(a, b) })
	s.parts = make([][]*part, len(s.p.Nodes))
	for n := range s.parts {
		s.parts[n] = make([]*part, 0, parts[n])
	}
	for _, i := range s.importance {
		for k := range s.units[i].parts {
			part := &s.units[i].parts[k]
			s.parts[part.node] = append(s.parts[part.node], part)
		}
	}
	for i, amount := range s.initial {
		capacity[i%s.dims] += float64(max(amount, 0))
	}
	hardness := make([]float64, len(s.classes))
	for c, class := range s.classes {
		s.easiest = append(s.easiest, c)
		fitting := 0
		for n := range s.p.Nodes {
			if class.on(n) {
				fitting++
			}
		}
		for r, amount := range class.demand {
			if amount > 0 {
				hardness[c] = max(hardness[c], float64(amount)/(capacity[r]+1)*float64(len(s.p.Nodes))/float64(fitting+1))
			}
		}
	}
	slices.SortStableFunc(s.easiest, func(a, b int) int { return cmp.Compare(hardness[a], hardness[b]) })
}

// compareUnits orders units, the least important first.
func (s *search) compareUnits(a, b int) int {
	ua, ub := &s.units[a], &s.units[b]
	return cmp.Or(cmp.Compare(ua.priority, ub.priority), cmp.Compare(ub.started, ua.started), cmp.Compare(a, b))
}

// on reports whether members of the class may be placed on the node if there is room.
func (c *searchClass) on(n int) bool { return c.fits == nil || n < len(c.fits) && c.fits[n] }

// enter starts the search afresh in a domain.
func (s *search) enter(nodes []int) {
	s.nodes = nodes
	clear(s.within)
	for _, n := range nodes {
		s.within[n] = true
	}
	for i := range s.units {
		s.spread[i] = 0
		for k := range s.units[i].parts {
			if s.within[s.units[i].parts[k].node] {
				s.spread[i]++
			}
		}
	}
	s.reset()
}

// reset brings every evicted pod back and takes every placed member away.
func (s *search) reset() {
	copy(s.room, s.initial)
	clear(s.gone)
	clear(s.lost)
	clear(s.spent)
	clear(s.free)
	for i, amount := range s.room {
		s.free[i%s.dims] += max(amount, 0)
	}
	s.clear()
}

// clear takes every placed member away.
func (s *search) clear() {
	for c := range s.placed {
		clear(s.placed[c])
	}
	clear(s.count)
	clear(s.byRole)
	copy(s.left, s.room)
	s.total = 0
	s.trail = s.trail[:0]
}

// step is one change of the state: the eviction of a unit, or the placement of members of a class on a node. By is 1, or
// -1 for the reverse.
type step struct {
	unit, class, node int
	by                int
}

// do makes a change and notes it.
func (s *search) do(t step) {
	s.apply(t)
	s.trail = append(s.trail, t)
}

// undo reverses the changes made since the trail had a length.
func (s *search) undo(length int) {
	for _, t := range slices.Backward(s.trail[length:]) {
		t.by = -t.by
		s.apply(t)
	}
	s.trail = s.trail[:length]
}

func (s *search) apply(t step) {
	if t.unit >= 0 {
		s.move(t.unit, t.by)
		return
	}
	class := &s.classes[t.class]
	left := s.left[t.node*s.dims : (t.node+1)*s.dims]
	for r, amount := range class.demand {
		left[r] -= amount * int64(t.by)
	}
	s.placed[t.class][t.node] += t.by
	s.count[t.class] += t.by
	s.byRole[class.role] += t.by
	s.total += t.by
}

// move evicts a unit, or brings it back if by is -1.
func (s *search) move(unit, by int) {
	u := &s.units[unit]
	s.gone[unit] = by > 0
	if u.whole >= 0 {
		s.lost[u.whole] += by
	}
	for _, use := range u.uses {
		s.spent[use.budget] += use.pods * by
	}
	for _, part := range u.parts {
		at := part.node * s.dims
		for r, amount := range part.frees {
			amount *= int64(by)
			s.free[r] += max(s.room[at+r]+amount, 0) - max(s.room[at+r], 0)
			s.room[at+r] += amount
			s.left[at+r] += amount
		}
	}
}

// evict evicts a unit with the surplus of its group.
func (s *search) evict(unit int) {
	if !s.gone[unit] {
		s.do(step{unit: unit, by: 1})
	}
	for _, u := range s.units[unit].surplus {
		if !s.gone[u] {
			s.do(step{unit: u, by: 1})
		}
	}
}

// assign places members of a class on a node.
func (s *search) assign(class, node, members int) {
	s.do(step{unit: -1, class: class, node: node, by: members})
}

// roomFor is how many members of the class the node can hold besides those that it has, at most most.
func (s *search) roomFor(class, node, most int) int {
	c := &s.classes[class]
	if !c.on(node) {
		return 0
	}
	left := s.left[node*s.dims : (node+1)*s.dims]
	for r, amount := range c.demand {
		if amount <= 0 {
			continue
		}
		if left[r] < amount {
			return 0
		}
		most = int(min(int64(most), left[r]/amount))
	}
	return most
}

// met reports whether the members placed are enough.
func (s *search) met() bool {
	return s.p.Need.MetBy(s.total, func(role string) int { return s.byRole[role] })
}

// lacking returns the index of a resource of which too little is free on all nodes together, or -1.
func (s *search) lacking() int {
	for r, amount := range s.p.Wanted {
		if s.free[r] < amount {
			return r
		}
	}
	return -1
}

// wanting is how many members of the class count towards what the minimum still lacks.
func (s *search) wanting(class int) int {
	own, roles := 0, 0
	for role, least := range s.p.Need.Roles {
		lack := max(least-s.byRole[role], 0)
		roles += lack
		if role == s.classes[class].role {
			own = lack
		}
	}
	return min(s.classes[class].count-s.count[class], own+max(s.p.Need.Total-s.total-roles, 0))
}
