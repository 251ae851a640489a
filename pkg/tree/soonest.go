package tree

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Stage is what a node has from a time on, as Node has it.
type Stage struct {
	At    int64
	Free  []int64
	Slots []int
}

// Soonest finds from when on all that is needed fits, and where. stages holds by node what it has from which time on,
// the soonest first and each more than the one before it; before the first, it has nothing. There is no answer if it
// never fits.
//
// Whether it fits is asked of some of the times only: what fits at one fits at all later ones. Of the domains that will
// do, those are taken that have the room the soonest.
func (p *Problem) Soonest(stages [][]Stage) (at int64, answer *Answer) {
	var times []int64
	for _, of := range stages {
		for i := range of {
			times = append(times, of[i].At)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	then := *p
	i := sort.Search(len(times), func(i int) bool {
		then.Nodes = p.nodesAt(stages, times[i])
		a := then.Least()
		if a != nil {
			answer = a
		}
		return a != nil
	})
	if i == len(times) {
		return 0, nil
	}
	if soon := p.soonFirst(stages, times[i]); soon != nil {
		answer = soon
	}
	return times[i], answer
}

// nodesAt is what nodes have at a time.
func (p *Problem) nodesAt(stages [][]Stage, at int64) []Node {
	nodes := make([]Node, len(stages))
	for n, of := range stages {
		if i := stageAt(of, at); i >= 0 {
			nodes[n] = Node{Free: of[i].Free, Slots: of[i].Slots}
			continue
		}
		nodes[n] = Node{Free: make([]int64, p.resources()), Slots: make([]int, len(p.Asks))}
	}
	return nodes
}

// stageAt is the position of the last stage that has begun at a time, -1 for none.
func stageAt(of []Stage, at int64) int {
	return sort.Search(len(of), func(i int) bool { return of[i].At > at }) - 1
}

// resources is how many resources members ask for.
func (p *Problem) resources() int {
	most := 0
	for _, asks := range p.Asks {
		most = max(most, len(asks))
	}
	return most
}

// soonFirst places what is needed by a time, in the domains and on the nodes that have their room the soonest; nil if
// it does not fit in that order.
func (p *Problem) soonFirst(stages [][]Stage, at int64) *Answer {
	order := make([]int, len(stages))
	for n := range order {
		order[n] = n
	}
	ready := func(n int) int64 {
		if i := stageAt(stages[n], at); i >= 0 {
			return stages[n][i].At
		}
		return math.MaxInt64
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ready(a), ready(b)) })
	then := *p
	then.Nodes, then.Levels, then.Order = make([]Node, len(order)), make([][]int, len(p.Levels)), map[int][]int{}
	nodes := p.nodesAt(stages, at)
	for i, n := range order {
		then.Nodes[i] = nodes[n]
	}
	for level := range p.Levels {
		for _, n := range order {
			then.Levels[level] = append(then.Levels[level], p.Levels[level][n])
		}
		then.Order[level] = p.domainsBy(level, stages, at)
	}
	answer := then.Least()
	if answer == nil {
		return nil
	}
	for _, classes := range answer.Nodes {
		for _, nodes := range classes {
			for i := range nodes {
				nodes[i] = order[nodes[i]]
			}
		}
	}
	return answer
}

// domainsBy returns the domains of the level that have room by a time for the largest of its sets that have none yet,
// in the order of when each has that.
func (p *Problem) domainsBy(level int, stages [][]Stage, by int64) []int {
	var need []int
	total := 0
	for i := range p.Sets {
		if set := &p.Sets[i]; set.Level != level && !slices.Contains(set.Prefer, level) {
			continue
		}
		all, n := p.demand(i), 0
		for _, of := range all {
			n += of
		}
		if n > total {
			need, total = all, n
		}
	}
	type gain struct {
		at    int64
		class int
		slots int
	}
	gains := map[int][]gain{}
	for n, d := range p.Levels[level] {
		if d == None {
			continue
		}
		had := make([]int, len(p.Asks))
		for _, stage := range stages[n] {
			for class, slots := range stage.Slots {
				if slots > had[class] && stage.At <= by {
					gains[d] = append(gains[d], gain{stage.At, class, slots - had[class]})
					had[class] = slots
				}
			}
		}
	}
	type domain struct {
		index, room int
		at          int64
	}
	var domains []domain
	for d, of := range gains {
		slices.SortFunc(of, func(a, b gain) int { return cmp.Compare(a.at, b.at) })
		left, in := slices.Clone(need), domain{index: d}
		for _, g := range of {
			in.room += g.slots
			if g.class < len(left) && left[g.class] > 0 {
				if left[g.class] -= g.slots; left[g.class] <= 0 {
					in.at = max(in.at, g.at)
				}
			}
		}
		if !slices.ContainsFunc(left, func(n int) bool { return n > 0 }) {
			domains = append(domains, in)
		}
	}
	slices.SortFunc(domains, func(a, b domain) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.room, b.room), cmp.Compare(a.index, b.index))
	})
	order := make([]int, len(domains))
	for i := range domains {
		order[i] = domains[i].index
	}
	return order
}
