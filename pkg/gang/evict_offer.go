package gang

import (
	"cmp"
	"math"
	"slices"
)

// costLevel is how many pods of one priority an eviction costs, in thousandths, because the cost of a group may be shared
// by several nodes.
type costLevel struct {
	priority  int32
	milliPods int64
}

// evictionCost is what an eviction costs. Its zero value is no eviction.
type evictionCost struct {
	// levels holds the pods, the highest priority first.
	levels []costLevel
	units  int
}

// add adds one more unit, of pods that count with a priority.
func (c *evictionCost) add(priority int32, milliPods int64) {
	c.units++
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

// compareCosts compares a divided by n with b divided by m: the highest priority counts first, then the next, and in the
// end the number of units.
func compareCosts(a evictionCost, n int, b evictionCost, m int) int {
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
	return cmp.Compare(a.units*m, b.units*n)
}

// nodeOffer is what it costs to make room on a node for further members of a class.
type nodeOffer struct {
	node int
	// version tells offers of the same node apart.
	version int
	// members is how many members there is room for afterwards.
	members int
	cost    evictionCost
	// started is the earliest start of a pod that has to go.
	started int64
}

// compare orders offers, the cheapest first.
func (o *nodeOffer) compare(other *nodeOffer) int {
	return cmp.Or(
		compareCosts(o.cost, o.members, other.cost, other.members),
		cmp.Compare(other.started, o.started),
		cmp.Compare(o.node, other.node),
	)
}

// offerHeap is a heap of offers for container/heap.
type offerHeap []nodeOffer

func (h offerHeap) Len() int           { return len(h) }
func (h offerHeap) Less(i, j int) bool { return h[i].compare(&h[j]) < 0 }
func (h offerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds an offer.
func (h *offerHeap) Push(x any) { *h = append(*h, x.(nodeOffer)) }

// Pop removes the last offer.
func (h *offerHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// offerWork is memory that drawing up an offer uses again and again.
type offerWork struct {
	candidates []unitValue
	picks      []unitPick
	marked     []int
	// short is what is missing on the node, freed what the picks free there.
	short, freed Vector
}

// unitValue is a unit that would help, by what it frees on a node, and how much it helps for each pod.
type unitValue struct {
	unit  int
	frees Vector
	value float64
}

// unitPick is a unit that is part of an offer. The units marked[from:to] of the workspace are gone because of it.
type unitPick struct {
	unitValue
	from, to int
}

// sortCandidates orders candidates: the lower priority first, then those that help most for each pod, then the less
// important. They come in the order of their importance.
func (s *evictSearch) sortCandidates(candidates []unitValue) {
	slices.SortStableFunc(candidates, func(a, b unitValue) int {
		ua, ub := &s.units[a.unit], &s.units[b.unit]
		return cmp.Or(
			cmp.Compare(s.scarce(ua), s.scarce(ub)),
			cmp.Compare(ua.priority, ub.priority),
			cmp.Compare(b.value, a.value),
		)
	})
}

// offer draws up the cheapest offer of a node for members of a class of which want are missing, and leaves its units in
// s.work.picks. There is none if the node has room already.
//
// It takes units by priority, and of one priority those that free most of what is short for each pod, until there is
// room. Then it puts back, the most important first, those without which there still is.
func (s *evictSearch) offer(class, node, want int) (nodeOffer, bool) {
	w := &s.work
	w.picks, w.marked, w.candidates = w.picks[:0], w.marked[:0], w.candidates[:0]
	c := &s.classes[class]
	want = min(want, c.count-s.count[class])
	if want <= 0 || !c.on(node) {
		return nodeOffer{}, false
	}
	left := s.left[node*s.dims : (node+1)*s.dims]
	for r, amount := range c.demand {
		w.freed[r], w.short[r] = 0, 0
		if amount > 0 && amount > left[r] {
			w.short[r] = amount - left[r]
		}
	}
	s.shortOfPools(class, node)
	if s.enough() {
		return nodeOffer{}, false
	}
	consider := func(unit int, frees, all Vector) {
		if s.gone[unit] {
			return
		}
		if value := cover(all, w.short[:s.dims]) + cover(s.units[unit].holdsAll, w.short[s.dims:]); value > 0 {
			w.candidates = append(w.candidates, unitValue{unit, frees, value / s.weight(unit, want)})
		}
	}
	for _, part := range s.parts[node] {
		consider(part.unit, part.frees, part.all)
	}
	s.elsewhere(node, func(unit int) { consider(unit, nil, nil) })
	s.sortCandidates(w.candidates)
	for _, candidate := range w.candidates {
		if s.enough() {
			break
		}
		if !s.gone[candidate.unit] && s.affordable(candidate.unit) {
			s.pick(candidate, node)
		}
	}
	enough := s.enough()
	for i := len(w.picks) - 1; i >= 0 && enough; i-- {
		s.mark(w.picks[i], -1)
		if !s.enough() {
			s.mark(w.picks[i], 1)
			continue
		}
		w.picks = slices.Delete(w.picks, i, i+1)
	}
	o := nodeOffer{node: node, version: s.offered[node], members: want}
	for r, amount := range c.demand {
		if amount > 0 {
			o.members = int(min(int64(o.members), (left[r]+w.freed[r])/amount))
		}
	}
	for pool, amount := range c.asks {
		if amount > 0 && s.pools.covers(pool, node) {
			o.members = int(min(int64(o.members), (s.pools.left[pool]+w.freed[s.dims+pool])/amount))
		}
	}
	for _, p := range w.picks {
		s.mark(p, -1)
	}
	if !enough {
		return nodeOffer{}, false
	}
	helped := (want + o.members - 1) / o.members
	for i, p := range w.picks {
		u := &s.units[p.unit]
		o.cost.add(u.priority, int64(1000*s.weight(p.unit, helped)))
		if scarce := s.scarce(u); scarce > 0 {
			o.cost.add(math.MaxInt32, int64(1000*scarce))
		}
		if i == 0 || u.started < o.started {
			o.started = u.started
		}
	}
	return o, true
}

// enough reports whether the picks free what is short.
func (s *evictSearch) enough() bool {
	for r, amount := range s.work.short {
		if s.work.freed[r] < amount {
			return false
		}
	}
	return true
}

// pick adds a unit to the picks, with the surplus of its group as far as that matters: on the node, or everywhere. Picks of
// that surplus become a part of it.
func (s *evictSearch) pick(c unitValue, node int) {
	w := &s.work
	w.picks = slices.DeleteFunc(w.picks, func(p unitPick) bool {
		goes := s.units[p.unit].whole == c.unit
		if goes {
			s.mark(p, -1)
		}
		return goes
	})
	p := unitPick{unitValue: c, from: len(w.marked)}
	w.marked = append(w.marked, c.unit)
	if surplus := s.units[c.unit].surplus; len(surplus) > 0 {
		p.frees = slices.Clone(c.frees)
		for _, part := range s.parts[node] {
			if s.units[part.unit].whole == c.unit && !s.gone[part.unit] {
				for r, amount := range part.frees {
					p.frees[r] += amount
				}
				if !s.everywhere() {
					w.marked = append(w.marked, part.unit)
				}
			}
		}
		if s.everywhere() {
			for _, u := range surplus {
				if !s.gone[u] {
					w.marked = append(w.marked, u)
				}
			}
		}
	}
	p.to = len(w.marked)
	w.picks = append(w.picks, p)
	s.mark(p, 1)
}

// everywhere reports whether it matters what goes on other nodes.
func (s *evictSearch) everywhere() bool { return len(s.p.Budgets)+len(s.p.Pools) > 0 }

// mark counts a pick as gone, or no longer if by is -1.
func (s *evictSearch) mark(p unitPick, by int) {
	for _, i := range s.work.marked[p.from:p.to] {
		s.gone[i] = by > 0
		for _, use := range s.units[i].uses {
			s.spent[use.budget] += use.pods * by
		}
		for pool, amount := range s.units[i].holds {
			s.work.freed[s.dims+pool] += amount * int64(by)
		}
	}
	for r, amount := range p.frees {
		s.work.freed[r] += amount * int64(by)
	}
}

// scarce is how much a unit takes of all budgets, if the search is to save them.
func (s *evictSearch) scarce(u *unit) int {
	scarce := 0
	if s.frugal {
		for _, use := range u.uses {
			scarce += max(use.pods, 0)
		}
	}
	return scarce
}

// affordable reports whether the budgets allow the eviction of the unit with the surplus of its group.
func (s *evictSearch) affordable(unit int) bool {
	u := &s.units[unit]
	if len(s.spent) == 0 || len(u.surplus) > 0 && len(s.p.Budgets) == 0 {
		return true
	}
	if len(u.surplus) == 0 {
		return !slices.ContainsFunc(u.uses, func(use budgetUse) bool {
			return s.spent[use.budget]+use.pods > s.budgets[use.budget]
		})
	}
	spent := map[int]int{}
	for _, i := range append([]int{unit}, u.surplus...) {
		if s.gone[i] {
			continue
		}
		for _, use := range s.units[i].uses {
			if spent[use.budget] += use.pods; s.spent[use.budget]+spent[use.budget] > s.budgets[use.budget] {
				return false
			}
		}
	}
	return true
}

// weight is the number of pods that go with a unit. While costs are shared, it is the share of one of the nodes that the
// eviction helps, which are at most helped.
func (s *evictSearch) weight(unit, helped int) float64 {
	u := &s.units[unit]
	pods := len(u.victims) + len(u.surplus) - s.lost[unit]
	if s.share {
		return float64(pods) / float64(max(min(helped, s.spread[unit]), 1))
	}
	return float64(pods)
}

// cover is how much of what is short the amounts free, as the sum of the parts of each resource.
func cover(frees, short Vector) float64 {
	sum := 0.0
	for r, amount := range short[:min(len(short), len(frees))] {
		if amount > 0 {
			sum += float64(min(frees[r], amount)) / float64(amount)
		}
	}
	return sum
}
