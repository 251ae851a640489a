package eviction

import (
	"cmp"
	"slices"
)

// Cost is what an eviction costs, by priority: work that is lost, and pods. Its zero value is no eviction.
type Cost struct {
	// levels hold the pods of one rank each, the highest first.
	levels []costLevel
}

// rank orders pods by priority; within a priority, protected pods rank above others.
type rank struct {
	priority  int32
	protected bool
}

func (r rank) compare(other rank) int {
	switch {
	case r.priority != other.priority:
		return cmp.Compare(r.priority, other.priority)
	case r.protected == other.protected:
		return 0
	case r.protected:
		return 1
	}
	return -1
}

type costLevel struct {
	rank
	// lost is in the unit of Victim.Lost. Pods are counted in thousandths, because several nodes may share the cost of a
	// group.
	lost, milliPods int64
}

// costOf is the cost of victims that are evicted together: all count with the rank of the most important one.
func (p *Problem) costOf(victims []int) costLevel {
	cost := costLevel{rank: p.Victims[victims[0]].rank(), milliPods: 1000 * int64(len(victims))}
	for _, i := range victims {
		cost.lost += max(p.Victims[i].Lost, 0)
		if of := p.Victims[i].rank(); of.compare(cost.rank) > 0 {
			cost.rank = of
		}
	}
	return cost
}

// Add adds the cost of evicting one pod.
func (c *Cost) Add(v *Victim) { c.add(costLevel{v.rank(), max(v.Lost, 0), 1000}) }

// Join adds another cost.
func (c *Cost) Join(other Cost) {
	for _, level := range other.levels {
		c.add(level)
	}
}

// Compare compares rank by rank, the highest first: less lost work is cheaper, then fewer pods.
func (c Cost) Compare(other Cost) int { return compareCosts(c, 1, other, 1) }

// add adds the cost of pods of one rank.
func (c *Cost) add(pods costLevel) {
	for i := range c.levels {
		switch order := c.levels[i].compare(pods.rank); {
		case order == 0:
			c.levels[i].lost += pods.lost
			c.levels[i].milliPods += pods.milliPods
			return
		case order < 0:
			c.levels = slices.Insert(c.levels, i, pods)
			return
		}
	}
	c.levels = append(c.levels, pods)
}

// compareCosts compares a divided by n with b divided by m. The highest rank decides, then the next.
func compareCosts(a Cost, n int, b Cost, m int) int {
	x, y := a.levels, b.levels
	for len(x) > 0 || len(y) > 0 {
		var one, other costLevel
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].compare(y[0].rank) > 0:
			one, x = x[0], x[1:]
		case len(x) == 0 || x[0].compare(y[0].rank) < 0:
			other, y = y[0], y[1:]
		default:
			one, x, other, y = x[0], x[1:], y[0], y[1:]
		}
		order := cmp.Or(cmp.Compare(one.lost*int64(m), other.lost*int64(n)),
			cmp.Compare(one.milliPods*int64(m), other.milliPods*int64(n)))
		if order != 0 {
			return order
		}
	}
	return 0
}

// costOfUnits is what the eviction of the units costs. Where costs are shared, it is the share of one of the nodes that
// the eviction helps, at most helped nodes.
func (s *search) costOfUnits(units []int, helped int) Cost {
	var sum Cost
	for _, u := range units {
		sum.add(s.unitCost(u, helped))
	}
	return sum
}

// unitCost is what a unit costs in addition to what is gone of it already, or the share of one node.
func (s *search) unitCost(unit, helped int) costLevel {
	u := &s.units[unit]
	cost := u.cost
	switch {
	case s.gone[unit]:
	case u.whole:
		cost.milliPods -= 1000 * int64(s.lost[u.group].total)
		cost.lost -= s.lost[u.group].work
	default:
		for _, in := range u.inside {
			if s.gone[in] {
				cost.milliPods -= s.units[in].cost.milliPods
				cost.lost -= s.units[in].cost.lost
			}
		}
	}
	if s.share {
		shares := int64(max(min(helped, s.spread[unit]), 1))
		cost.milliPods /= shares
		cost.lost /= shares
	}
	return cost
}

// candidate is a unit whose eviction would help. value is how much it frees of what is missing for its cost.
type candidate struct {
	unit  int
	cost  costLevel
	value float64
}

// candidate returns the unit as one that frees help of what is missing.
func (s *search) candidate(unit int, help float64, helped int) candidate {
	cost := s.unitCost(unit, helped)
	return candidate{unit, cost, help / (float64(cost.lost) + podWeight*float64(max(cost.milliPods, 1)))}
}

// podWeight is the weight of a thousandth of a pod beside lost work. It is tiny, so that the number of pods only
// decides between equal amounts of work.
const podWeight = 1e-6

// sort orders candidates: the lower rank first, then the higher value, then the less important.
func (s *search) sort(candidates []candidate) {
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(
			a.cost.compare(b.cost.rank),
			cmp.Compare(b.value, a.value),
			s.compareImportance(a.unit, b.unit),
		)
	})
}
