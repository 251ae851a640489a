package eviction

import (
	"cmp"
	"math"
	"slices"
)

// Cost is what an eviction costs: pods by priority. Its zero value is no eviction.
type Cost struct {
	// levels hold the pods of one priority each, the highest first.
	levels []costLevel
}

type costLevel struct {
	priority int32
	// milliPods are thousandths of pods, because several nodes may share the cost of a group.
	milliPods int64
}

// costOf is what victims cost that go together, the most important last: all count with its priority.
func (p *Problem) costOf(victims []int) costLevel {
	return costLevel{p.Victims[victims[len(victims)-1]].Priority, 1000 * int64(len(victims))}
}

// add adds the cost of pods of one priority.
func (c *Cost) add(pods costLevel) {
	for i := range c.levels {
		switch {
		case c.levels[i].priority == pods.priority:
			c.levels[i].milliPods += pods.milliPods
			return
		case c.levels[i].priority < pods.priority:
			c.levels = slices.Insert(c.levels, i, pods)
			return
		}
	}
	c.levels = append(c.levels, pods)
}

// compareCosts compares a divided by n with b divided by m. The highest priority decides, then the next.
func compareCosts(a Cost, n int, b Cost, m int) int {
	x, y := a.levels, b.levels
	for len(x) > 0 || len(y) > 0 {
		var pods, others int64
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].priority > y[0].priority:
			pods, x = x[0].milliPods, x[1:]
		case len(x) == 0 || x[0].priority < y[0].priority:
			others, y = y[0].milliPods, y[1:]
		default:
			pods, x, others, y = x[0].milliPods, x[1:], y[0].milliPods, y[1:]
		}
		if order := cmp.Compare(pods*int64(m), others*int64(n)); order != 0 {
			return order
		}
	}
	return 0
}

// costs compare evictions.
type costs struct {
	*state
	// spread is, by unit, on how many nodes of the domain it frees anything. share is set while the cost of a group counts
	// in equal shares for the nodes that its eviction helps.
	spread []int
	share  bool
	// frugal is set while units that take from budgets come last.
	frugal bool
	// kept is a unit that has to stay, -1 for none.
	kept int
}

// of is what the eviction of the units costs. Shared costs count for one of the nodes that it helps, which are at most
// helped.
func (c *costs) of(units []int, helped int) Cost {
	var sum Cost
	for _, u := range units {
		sum.add(c.unit(u, helped))
		if scarce := c.scarce(u); scarce > 0 {
			sum.add(costLevel{math.MaxInt32, int64(scarce)})
		}
	}
	return sum
}

// scarce is how much a unit takes of all budgets, if the search is to save them.
func (c *costs) scarce(unit int) int {
	scarce := 0
	if c.frugal {
		for _, use := range c.units[unit].uses {
			scarce += use.pods
		}
	}
	return scarce
}

// unit is what a unit costs besides what is gone of it, or the share of one node.
func (c *costs) unit(unit, helped int) costLevel {
	u := &c.units[unit]
	cost := u.cost
	if u.whole && !c.gone[unit] {
		cost.milliPods -= 1000 * int64(c.lost[u.group].total)
	}
	if c.share {
		cost.milliPods /= int64(max(min(helped, c.spread[unit]), 1))
	}
	return cost
}

// candidate is a unit that would help, at what cost, and how much it helps for each pod.
type candidate struct {
	unit  int
	frees Vector
	cost  costLevel
	value float64
}

// candidate is the unit as one that frees some of what is missing.
func (c *costs) candidate(unit int, frees Vector, help float64, helped int) candidate {
	cost := c.unit(unit, helped)
	return candidate{unit, frees, cost, help / float64(max(cost.milliPods, 1))}
}

// sort orders candidates: the lower priority first, then those that help most for each pod, then the less
// important.
func (c *costs) sort(candidates []candidate) {
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(c.scarce(a.unit), c.scarce(b.unit)),
			cmp.Compare(a.cost.priority, b.cost.priority),
			cmp.Compare(b.value, a.value),
			c.compareImportance(a.unit, b.unit),
		)
	})
}
