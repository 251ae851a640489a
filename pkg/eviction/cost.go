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

// add adds pods of a priority.
func (c *Cost) add(priority int32, pods float64) {
	milliPods := int64(1000 * pods)
	for i := range c.levels {
		switch {
		case c.levels[i].priority == priority:
			c.levels[i].milliPods += milliPods
			return
		case c.levels[i].priority < priority:
			c.levels = slices.Insert(c.levels, i, costLevel{priority, milliPods})
			return
		}
	}
	c.levels = append(c.levels, costLevel{priority, milliPods})
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

// cost is what the eviction of the units costs. Shared costs count for one of the nodes that it helps, which are at most
// helped.
func (s *search) cost(units []int, helped int) Cost {
	var c Cost
	for _, u := range units {
		c.add(s.units[u].priority, s.weight(u, helped))
		if scarce := s.scarce(u); scarce > 0 {
			c.add(math.MaxInt32, float64(scarce))
		}
	}
	return c
}

// scarce is how much a unit takes of all budgets, if the search is to save them.
func (s *search) scarce(unit int) int {
	scarce := 0
	if s.frugal {
		for _, use := range s.units[unit].uses {
			scarce += use.pods
		}
	}
	return scarce
}

// weight is the number of pods that go with a unit besides those that are gone, or its share of one node.
func (s *search) weight(unit, helped int) float64 {
	pods := float64(len(s.units[unit].victims))
	if s.units[unit].whole && !s.gone[unit] {
		pods -= float64(s.lost[s.units[unit].group].total)
	}
	if s.share {
		pods /= float64(max(min(helped, s.spread[unit]), 1))
	}
	return pods
}
