package gang

import "slices"

// For few units the search of every choice takes little time, and users see what was chosen.
const (
	exactUnits = 24
	// exactVisits bounds how many nodes one call of Evict looks at in that search. They take some ten milliseconds.
	exactVisits = 1 << 16
)

// exact looks for a solution that is cheaper than best, which may be nil, among all choices of units in the present
// domain. It is a branch and bound: at first all units are gone, then one after the other is brought back or stays gone,
// the most important first. It does nothing for many units and stops when its visits are used up.
func (s *search) exact(best *solution) *solution {
	b := branching{search: s, best: best, spent: make([]int, len(s.p.Budgets))}
	for _, i := range s.importance {
		whole := s.units[i].whole
		if len(s.p.Wanted) > 0 || s.spread[i] > 0 || whole >= 0 && s.spread[whole] > 0 {
			b.units = append(b.units, i)
		}
	}
	if len(b.units) > exactUnits || s.visits <= 0 {
		return best
	}
	slices.SortFunc(b.units, s.compareSparing)
	s.reset()
	for _, i := range b.units {
		s.move(i, 1)
	}
	if b.feasible() {
		b.decide(0, evictionCost{})
	}
	return b.best
}

// branching is the state of the search of every choice.
type branching struct {
	*search
	units []int
	best  *solution
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
	u := &b.search.units[i]
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
		allowed = allowed && b.spent[use.budget] <= b.p.Budgets[use.budget]
	}
	if allowed {
		cost.levels = slices.Clone(cost.levels)
		cost.add(b.goesAt(i), int64(1000*len(u.victims)))
		b.decide(at+1, cost)
	}
	for _, use := range u.uses {
		b.spent[use.budget] -= use.pods
	}
}

// feasible reports whether the gang can start with the units gone that are, whatever the budgets allow.
func (b *branching) feasible() bool {
	b.visits -= (len(b.nodes) + 1) * len(b.classes)
	b.clear()
	return b.lacking() < 0 && b.arrange(false)
}
