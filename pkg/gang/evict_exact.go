package gang

import "slices"

// For few units the search of every choice takes little time, and users see what was chosen.
const (
	exactUnits = 24
	// exactVisits bounds how many nodes one call of Evict looks at in that search, which takes some milliseconds.
	exactVisits = 1 << 16
)

// exact looks for a solution that is cheaper than best, which may be nil, among all choices of units in the present
// domain. It is a branch and bound: at first all units are gone, then one after the other is brought back or stays gone,
// the most important first. It does nothing for many units or nodes and stops when its visits are used up.
func (s *evictSearch) exact(best *evictSolution) *evictSolution {
	if s.visits < exactUnits*s.visitsOnce() {
		return best
	}
	b := branching{evictSearch: s, best: best, units: s.relevant(), spent: make([]int, len(s.budgets))}
	if len(b.units) > exactUnits {
		return best
	}
	slices.SortFunc(b.units, s.compareSparing)
	s.reset()
	for _, i := range b.units {
		s.do(evictStep{unit: i, by: 1})
	}
	b.start = len(s.trail)
	if b.feasible() {
		b.decide(0, evictionCost{})
	}
	return b.best
}

// visitsOnce is how many nodes have to be looked at to see whether the gang can start.
func (s *evictSearch) visitsOnce() int { return (len(s.nodes) + 1) * max(len(s.classes), 1) }

// relevant returns the units that the gang might need to go.
func (s *evictSearch) relevant() []int {
	if slices.ContainsFunc(s.wanted, func(amount int64) bool { return amount > 0 }) {
		return slices.Clone(s.importance)
	}
	units := s.askedHolders()
	for _, i := range slices.Clone(units) {
		units = append(units, s.units[i].surplus...)
	}
	for _, n := range s.nodes {
		for _, part := range s.parts[n] {
			units = append(units, part.unit)
			units = append(units, s.units[part.unit].surplus...)
		}
	}
	slices.Sort(units)
	return slices.Compact(units)
}

// branching is the state of the search of every choice.
type branching struct {
	*evictSearch
	// start is the length of the trail when no member is placed.
	start int
	units []int
	best  *evictSolution
	// spent is the number of evictions by budget that are decided on.
	spent []int
}

// decide decides on the units from an index on. cost is that of the decisions so far.
func (b *branching) decide(at int, cost evictionCost) {
	if b.visits <= 0 || b.best != nil && compareCosts(cost, 1, b.best.cost, 1) >= 0 {
		return
	}
	if at == len(b.units) {
		if b.feasible() {
			b.best = b.save()
		}
		return
	}
	i := b.units[at]
	u := &b.evictSearch.units[i]
	if u.whole < 0 || !b.gone[u.whole] {
		b.move(i, -1)
		if b.feasible() {
			b.decide(at+1, cost)
		}
		b.move(i, 1)
	}
	allowed := true
	for _, use := range u.uses {
		b.spent[use.budget] += use.pods
		allowed = allowed && b.spent[use.budget] <= b.budgets[use.budget]
	}
	if allowed {
		cost.levels = slices.Clone(cost.levels)
		cost.add(b.countsAs(i), int64(1000*len(u.victims)))
		b.decide(at+1, cost)
	}
	for _, use := range u.uses {
		b.spent[use.budget] -= use.pods
	}
}

// feasible reports whether the gang can start with the units gone that are, whatever the budgets allow.
func (b *branching) feasible() bool {
	b.visits -= b.visitsOnce()
	b.undo(b.start)
	return b.lacking() < 0 && b.arrange(false)
}
