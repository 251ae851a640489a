package eviction

import (
	"cmp"
	"math"
	"slices"
)

// prepared is a problem in the form that the search needs. Nothing of it changes.
type prepared struct {
	*Problem
	// dims is how many entries vectors of the search have: those of the longest demand.
	dims    int
	classes []Class
	// easiest holds the classes in ascending order of the part of the cluster that one member takes.
	easiest []int
	units   []unit
	groups  []Group
	// onNode holds, by node, what units free there, the least important first.
	onNode [][]*part
	// parts are those of all units.
	parts []part
}

func prepare(problem *Problem) *prepared {
	p := &prepared{Problem: problem, onNode: make([][]*part, len(problem.Nodes))}
	for _, c := range p.Classes {
		p.dims = max(p.dims, len(c.Demand))
	}
	for _, c := range p.Classes {
		c.Demand = append(slices.Clip(c.Demand), make(Vector, p.dims-len(c.Demand))...)
		p.classes = append(p.classes, c)
	}
	p.addUnits()
	order := make([]int, len(p.units))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, p.compareImportance)
	for _, i := range order {
		u := &p.units[i]
		for k := range u.parts {
			p.onNode[u.parts[k].node] = append(p.onNode[u.parts[k].node], &u.parts[k])
		}
	}
	p.sortClasses()
	return p
}

// sortClasses orders classes by how hard they are to place.
func (p *prepared) sortClasses() {
	capacity, hardness := make(Vector, p.dims), make([]float64, len(p.classes))
	all := newState(p)
	all.removeAll(highest)
	for n := range p.Nodes {
		for r, amount := range all.room(n) {
			capacity[r] += max(amount, 0)
		}
	}
	for c := range p.classes {
		class, fitting := &p.classes[c], 0
		p.easiest = append(p.easiest, c)
		for n := range p.Nodes {
			if class.on(n) {
				fitting++
			}
		}
		for r, amount := range class.Demand {
			part := float64(amount) / (float64(capacity[r]) + 1)
			hardness[c] = max(hardness[c], part*float64(len(p.Nodes))/float64(fitting+1))
		}
	}
	slices.SortStableFunc(p.easiest, func(a, b int) int { return cmp.Compare(hardness[a], hardness[b]) })
}

// on reports whether members of the class may be placed on the node if there is room.
func (c *Class) on(n int) bool { return c.Fits == nil || n < len(c.Fits) && c.Fits[n] }

// state says which units are gone and where members are placed.
type state struct {
	*prepared
	gone []bool
	// lost are the spare members that are gone, by group.
	lost []loss
	// spent is the number of evictions by budget.
	spent []int
	// placed is the number of members by class and node, count by class, byRole by role and total in all.
	placed [][]int
	count  []int
	byRole map[string]int
	total  int
	// trail lists the changes, so that the latest can be reversed.
	trail []step
	// scratch is the answer of room.
	scratch Vector
}

// step is one change of the state: a unit goes, or members of a class are placed on a node, in which case unit is -1.
// By is 1 or the number of members, and negative for the reverse.
type step struct {
	unit, class, node int
	by                int
}

func newState(p *prepared) *state {
	s := &state{
		prepared: p, gone: make([]bool, len(p.units)), lost: make([]loss, len(p.groups)), spent: make([]int, len(p.Budgets)),
		count: make([]int, len(p.classes)), byRole: map[string]int{}, scratch: make(Vector, p.dims),
		trail: make([]step, 0, len(p.units)),
	}
	for range p.classes {
		s.placed = append(s.placed, make([]int, len(p.Nodes)))
	}
	return s
}

// do makes a change and notes it.
func (s *state) do(t step) {
	s.apply(t)
	s.trail = append(s.trail, t)
}

// undo reverses the changes made since the trail had a length.
func (s *state) undo(length int) {
	for _, t := range slices.Backward(s.trail[length:]) {
		t.by = -t.by
		s.apply(t)
	}
	s.trail = s.trail[:length]
}

func (s *state) apply(t step) {
	if t.unit < 0 {
		s.placed[t.class][t.node] += t.by
		s.count[t.class] += t.by
		s.byRole[s.classes[t.class].Role] += t.by
		s.total += t.by
		return
	}
	u := &s.units[t.unit]
	s.gone[t.unit] = t.by > 0
	for _, use := range u.uses {
		s.spent[use.budget] += use.pods * t.by
	}
	if u.group >= 0 && !u.whole {
		for _, i := range u.victims {
			s.lost[u.group].add(s.Victims[i].Role, t.by)
		}
		s.lost[u.group].work += u.cost.lost * int64(t.by)
	}
}

// freed is what the node has free after the evictions, room what it has left after placement. The next call of either
// overwrites it.
func (s *state) freed(node int) Vector {
	clear(s.scratch)
	copy(s.scratch, s.Nodes[node].Free)
	for _, part := range s.onNode[node] {
		if s.gone[part.unit] {
			s.scratch.add(part.frees, 1)
		}
	}
	return s.scratch
}

func (s *state) room(node int) Vector {
	room := s.freed(node)
	for class := range s.placed {
		if members := s.placed[class][node]; members != 0 {
			room.add(s.classes[class].Demand, -int64(members))
		}
	}
	return room
}

// goneAround reports whether a unit around this one is gone.
func (s *state) goneAround(unit int) bool {
	return slices.ContainsFunc(s.units[unit].around, func(u int) bool { return s.gone[u] })
}

// legal reports whether budgets and its group allow the eviction of the unit besides what is gone.
func (s *state) legal(unit int) bool {
	u := &s.units[unit]
	for _, use := range u.uses {
		if s.spent[use.budget] > s.Budgets[use.budget] {
			return false
		}
	}
	if u.group < 0 || u.whole {
		return true
	}
	return s.groups[u.group].tolerates(s.lost[u.group])
}

// remove evicts a unit and reports whether that is allowed. If not, it stays.
func (s *state) remove(unit int) bool {
	if s.gone[unit] || s.goneAround(unit) {
		return false
	}
	start := len(s.trail)
	for _, u := range s.units[unit].inside {
		if s.gone[u] {
			s.do(step{unit: u, by: -1})
		}
	}
	s.do(step{unit: unit, by: 1})
	if !s.legal(unit) {
		s.undo(start)
		return false
	}
	return true
}

// highest is a rank that no unit exceeds.
var highest = rank{math.MaxInt32, true}

// removeAll evicts all units up to a rank, whatever budgets and groups allow.
func (s *state) removeAll(limit rank) {
	within := func(u int) bool { return s.units[u].cost.compare(limit) <= 0 }
	for u := range s.units {
		if within(u) && !slices.ContainsFunc(s.units[u].around, within) {
			s.do(step{unit: u, by: 1})
		}
	}
}

// ranks are those of the units, the lowest first.
func (p *prepared) ranks() []rank {
	var all []rank
	for u := range p.units {
		all = append(all, p.units[u].cost.rank)
	}
	slices.SortFunc(all, rank.compare)
	return slices.Compact(all)
}

// fits is how many members of the class fit in what the node has left, at most most.
func (s *state) fits(class, node, most int) int {
	if !s.classes[class].on(node) || most <= 0 {
		return 0
	}
	for r, left := range s.room(node) {
		most = fitting(left, s.classes[class].Demand[r], most)
	}
	return most
}

// fitting is how many times the amount is left, at most most.
func fitting(left, amount int64, most int) int {
	switch {
	case amount <= 0:
		return most
	case left < amount:
		return 0
	}
	return int(min(left/amount, int64(most)))
}

// met reports whether the members placed are enough.
func (s *state) met() bool {
	return s.Need.MetBy(s.total, func(role string) int { return s.byRole[role] })
}

// wanting is how many members of the class count towards what the minimum still lacks.
func (s *state) wanting(class int) int {
	own, roles := 0, 0
	for role, least := range s.Need.Roles {
		lack := max(least-s.byRole[role], 0)
		roles += lack
		if role == s.classes[class].Role {
			own = lack
		}
	}
	return min(s.classes[class].Count-s.count[class], own+max(s.Need.Total-s.total-roles, 0))
}

// assign places up to most members of a class on a node and returns how many it placed.
func (s *state) assign(class, node, most int) int {
	members := s.fits(class, node, min(most, s.classes[class].Count-s.count[class]))
	if members > 0 {
		s.do(step{unit: -1, class: class, node: node, by: members})
	}
	return members
}

// goneSince returns the units that have gone since the trail had a length.
func (s *state) goneSince(start int) []int {
	var gone []int
	for _, t := range s.trail[start:] {
		if t.unit >= 0 && s.gone[t.unit] {
			gone = append(gone, t.unit)
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}
