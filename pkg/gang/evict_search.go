package gang

import (
	"cmp"
	"maps"
	"slices"
)

// evictSearch is the state of the search for victims: which units are gone, and where members are placed.
type evictSearch struct {
	p *EvictProblem
	// resources are those that the gang asks for, by their index in the problem. Vectors of the search have as many
	// entries, which is dims.
	resources []int
	dims      int
	wanted    Vector
	classes   []evictSearchClass
	// easiest holds the classes in ascending order of the part of the cluster that one member takes.
	easiest []int
	units   []unit
	// importance holds the units, the least important first; parts holds, by node, what each of them frees there, in the
	// same order.
	importance []int
	parts      [][]*unitPart
	// emptied is what the nodes have free, by node and resource, when all units are gone.
	emptied []int64
	// capacity is the sum of emptied over all nodes, where what is below zero counts as zero.
	capacity Vector

	// nodes is the present domain, and within tells its nodes by index.
	nodes  []int
	within []bool
	// reach is, by class, for how many members the domain has room when all units are gone, if there are no others.
	reach []int
	// spread is, by unit, on how many nodes of the domain it frees anything.
	spread []int
	// share is set while the cost of a group counts in equal shares for the nodes that its eviction helps.
	share bool
	// frugal is set while units that take from budgets come last.
	frugal bool

	// room is what the nodes have free after the evictions, left what remains of that after placement; both by node and
	// resource.
	room, left []int64
	pools      evictPools
	// placed is the number of members by class and node, count by class, byRole by role and total in all.
	placed [][]int
	count  []int
	byRole map[string]int
	total  int
	gone   []bool
	// lost is, by the rest of a group, how much of its surplus is gone.
	lost []int
	// budgets are those of the problem, and those that bound how many members groups lose; spent is the number of evictions
	// by budget.
	budgets, spent []int
	// free is the sum of room over all nodes, where room that is below zero counts as zero.
	free Vector
	// offered counts how often the offer of a node was drawn up.
	offered []int
	// most is the largest number of members that were placed together.
	most int
	// visits is how many nodes the search of every choice may still look at.
	visits int
	// trail lists the changes, so that the latest can be reversed.
	trail []evictStep

	work offerWork
}

// evictSearchClass is a class of members with its demand as a vector of the search.
type evictSearchClass struct {
	demand, asks Vector
	count        int
	role         string
	fits         []bool
}

func newSearch(p *EvictProblem, visits int) *evictSearch {
	s := &evictSearch{p: p, visits: visits, resources: p.resources(), byRole: map[string]int{}}
	s.dims = len(s.resources)
	s.wanted = make(Vector, s.dims)
	p.Wanted.narrow(s.resources, s.wanted)
	for _, c := range p.Classes {
		demand := make(Vector, s.dims)
		c.Demand.narrow(s.resources, demand)
		for r, amount := range demand {
			demand[r] = max(amount, 0)
		}
		asks := make(Vector, len(p.Pools))
		for pool, amount := range c.Asks {
			asks[pool] = max(amount, 0)
		}
		s.classes = append(s.classes, evictSearchClass{demand: demand, asks: asks, count: max(c.Count, 0), role: c.Role, fits: c.Fits})
	}
	s.room = make([]int64, len(p.Nodes)*s.dims)
	for n := range p.Nodes {
		p.Nodes[n].Free.narrow(s.resources, s.room[n*s.dims:(n+1)*s.dims])
	}
	s.units, s.budgets = p.units(s.resources)
	s.emptied = slices.Clone(s.room)
	s.rank()
	s.pools = newEvictPools(s)
	s.left = slices.Clone(s.room)
	for range s.classes {
		s.placed = append(s.placed, make([]int, len(p.Nodes)))
	}
	s.count, s.reach = make([]int, len(s.classes)), make([]int, len(s.classes))
	s.gone, s.lost, s.spread = make([]bool, len(s.units)), make([]int, len(s.units)), make([]int, len(s.units))
	s.spent = make([]int, len(s.budgets))
	s.offered, s.within = make([]int, len(p.Nodes)), make([]bool, len(p.Nodes))
	s.free, s.work.short, s.work.freed = make(Vector, s.dims), make(Vector, s.dims+len(p.Pools)), make(Vector, s.dims+len(p.Pools))
	for i, amount := range s.room {
		s.free[i%s.dims] += max(amount, 0)
	}
	return s
}

// resources returns the indices of the resources that the gang asks for.
func (p *EvictProblem) resources() []int {
	asked := map[int]bool{}
	for r, amount := range p.Wanted {
		asked[r] = amount > 0
	}
	for _, c := range p.Classes {
		for r, amount := range c.Demand {
			asked[r] = asked[r] || amount > 0
		}
	}
	maps.DeleteFunc(asked, func(_ int, asked bool) bool { return !asked })
	return slices.Sorted(maps.Keys(asked))
}

// rank orders units by importance and classes by how hard they are to place.
func (s *evictSearch) rank() {
	s.importance = make([]int, len(s.units))
	parts := make([]int, len(s.p.Nodes))
	s.capacity = make(Vector, s.dims)
	for i := range s.units {
		s.importance[i] = i
		for k := range s.units[i].parts {
			part := &s.units[i].parts[k]
			parts[part.node]++
			for r, amount := range part.frees {
				s.emptied[part.node*s.dims+r] += amount
			}
		}
	}
	slices.SortFunc(s.importance, func(a, b int) int { return s.compareUnits(a, b) })
	s.parts = make([][]*unitPart, len(s.p.Nodes))
	for n := range s.parts {
		s.parts[n] = make([]*unitPart, 0, parts[n])
	}
	for _, i := range s.importance {
		for k := range s.units[i].parts {
			part := &s.units[i].parts[k]
			s.parts[part.node] = append(s.parts[part.node], part)
		}
	}
	for i, amount := range s.emptied {
		s.capacity[i%s.dims] += max(amount, 0)
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
				hardness[c] = max(hardness[c], float64(amount)/(float64(s.capacity[r])+1)*float64(len(s.p.Nodes))/float64(fitting+1))
			}
		}
	}
	slices.SortStableFunc(s.easiest, func(a, b int) int { return cmp.Compare(hardness[a], hardness[b]) })
}

// compareUnits orders units, the least important first.
func (s *evictSearch) compareUnits(a, b int) int {
	ua, ub := &s.units[a], &s.units[b]
	return cmp.Or(cmp.Compare(ua.priority, ub.priority), cmp.Compare(ub.started, ua.started), cmp.Compare(a, b))
}

// on reports whether members of the class may be placed on the node if there is room.
func (c *evictSearchClass) on(n int) bool { return c.fits == nil || n < len(c.fits) && c.fits[n] }

// enter starts the search afresh in a domain.
func (s *evictSearch) enter(nodes []int) {
	s.reset()
	for _, n := range s.nodes {
		s.within[n] = false
		for _, part := range s.parts[n] {
			s.spread[part.unit] = 0
		}
	}
	s.nodes = s.nodes[:0]
	for _, n := range nodes {
		if s.within[n] {
			continue
		}
		s.within[n] = true
		s.nodes = append(s.nodes, n)
		for _, part := range s.parts[n] {
			s.spread[part.unit]++
		}
	}
	for class := range s.classes {
		s.reach[class] = 0
		for _, n := range s.nodes {
			left := s.classes[class].count - s.reach[class]
			if left == 0 {
				break
			}
			s.reach[class] += s.roomIn(s.emptied, s.pools.emptied, class, n, left)
		}
	}
}

// reset brings every evicted pod back and takes every placed member away.
func (s *evictSearch) reset() { s.undo(0) }

// evictStep is one change of the state: the eviction of a unit, or the placement of members of a class on a node, in
// which case unit is -1. By is 1 or the number of members, and negative for the reverse.
type evictStep struct {
	unit, class, node int
	by                int
}

// do makes a change and notes it.
func (s *evictSearch) do(t evictStep) {
	s.apply(t)
	s.trail = append(s.trail, t)
}

// undo reverses the changes made since the trail had a length.
func (s *evictSearch) undo(length int) {
	for _, t := range slices.Backward(s.trail[length:]) {
		t.by = -t.by
		s.apply(t)
	}
	s.trail = s.trail[:length]
}

func (s *evictSearch) apply(t evictStep) {
	if t.unit >= 0 {
		s.move(t.unit, t.by)
		return
	}
	class := &s.classes[t.class]
	left := s.left[t.node*s.dims : (t.node+1)*s.dims]
	for r, amount := range class.demand {
		left[r] -= amount * int64(t.by)
	}
	for pool, amount := range class.asks {
		if s.pools.covers(pool, t.node) {
			s.pools.left[pool] -= amount * int64(t.by)
		}
	}
	s.placed[t.class][t.node] += t.by
	s.count[t.class] += t.by
	s.byRole[class.role] += t.by
	s.total += t.by
}

// move evicts a unit, or brings it back if by is -1.
func (s *evictSearch) move(unit, by int) {
	u := &s.units[unit]
	s.gone[unit] = by > 0
	if u.whole >= 0 {
		s.lost[u.whole] += by
	}
	for _, use := range u.uses {
		s.spent[use.budget] += use.pods * by
	}
	for pool, amount := range u.holds {
		s.pools.left[pool] += amount * int64(by)
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
func (s *evictSearch) evict(unit int) {
	if !s.gone[unit] {
		s.do(evictStep{unit: unit, by: 1})
	}
	for _, u := range s.units[unit].surplus {
		if !s.gone[u] {
			s.do(evictStep{unit: u, by: 1})
		}
	}
}

// assign places members of a class on a node.
func (s *evictSearch) assign(class, node, members int) {
	s.do(evictStep{unit: -1, class: class, node: node, by: members})
}

// roomFor is how many members of the class the node can hold besides those that it has, at most most.
func (s *evictSearch) roomFor(class, node, most int) int {
	return s.roomIn(s.left, s.pools.left, class, node, most)
}

// roomIn is how many members of the class fit in what a node and the pools have left, at most most. Nil pools do not count.
func (s *evictSearch) roomIn(left, pools []int64, class, node, most int) int {
	c := &s.classes[class]
	if !c.on(node) {
		return 0
	}
	left = left[node*s.dims : (node+1)*s.dims]
	for r, amount := range c.demand {
		most = int(min(int64(most), fitting(left[r], amount, most)))
	}
	for pool := range pools {
		if s.pools.covers(pool, node) {
			most = int(min(int64(most), fitting(pools[pool], c.asks[pool], most)))
		}
	}
	return most
}

// fitting is how many times the amount is left, or most if none is asked for.
func fitting(left, amount int64, most int) int64 {
	switch {
	case amount <= 0:
		return int64(most)
	case left < amount:
		return 0
	}
	return left / amount
}

// hopeless reports whether the gang cannot start in the domain even if all units go, whatever the budgets allow. Each
// class counts as if it had the domain for itself, so the reverse is not certain with several classes.
func (s *evictSearch) hopeless() bool {
	for r, amount := range s.wanted {
		if s.capacity[r] < amount {
			s.most = max(s.most, s.p.Need.Members())
			return true
		}
	}
	total, byRole := 0, map[string]int{}
	for class, members := range s.reach {
		total += members
		byRole[s.classes[class].role] += members
	}
	if s.p.Need.MetBy(total, func(role string) int { return byRole[role] }) {
		return false
	}
	s.most = max(s.most, min(total, s.p.Need.Members()-1))
	return true
}

// met reports whether the members placed are enough.
func (s *evictSearch) met() bool {
	return s.p.Need.MetBy(s.total, func(role string) int { return s.byRole[role] })
}

// lacking returns the index of a resource of which too little is free on all nodes together, or -1.
func (s *evictSearch) lacking() int {
	for r, amount := range s.wanted {
		if s.free[r] < amount {
			return r
		}
	}
	return -1
}

// wanting is how many members of the class count towards what the minimum still lacks.
func (s *evictSearch) wanting(class int) int {
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
