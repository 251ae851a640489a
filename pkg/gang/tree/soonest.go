package tree

import (
	"cmp"
	"slices"
	"sort"
)

// Soonest finds from when on all that is needed fits, and where. stages holds by node what it has from which time on,
// the soonest first and each more than the one before it; before the first, it has nothing. There is no answer if it
// never fits.
//
// Whether it fits is asked of some of the times only: what fits at one fits at all later ones. Of the domains that will
// do, those are taken that have the room the soonest.
func (p *Problem) Soonest(stages [][]Node) (at int64, answer *Answer) {
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
		// Whether it fits is found out the sooner if the tightest go first.
		then.Nodes = p.nodesAt(stages, times[i])
		for n := range then.Nodes {
			then.Nodes[n].At = 0
		}
		a := then.Least()
		if a != nil {
			answer = a
		}
		return a != nil
	})
	if i == len(times) {
		return 0, nil
	}
	then.Nodes = p.nodesAt(stages, times[i])
	if soonest := then.Least(); soonest != nil {
		answer = soonest
	}
	return times[i], answer
}

// nodesAt is what nodes have at a time.
func (p *Problem) nodesAt(stages [][]Node, at int64) []Node {
	resources := 0
	for _, asks := range p.Asks {
		resources = max(resources, len(asks))
	}
	nothing := Node{Free: make([]int64, resources), Slots: make([]int, len(p.Asks))}
	nodes := make([]Node, len(stages))
	for n, of := range stages {
		nodes[n] = nothing
		if begun := sort.Search(len(of), func(i int) bool { return of[i].At > at }); begun > 0 {
			nodes[n] = of[begun-1]
		}
	}
	return nodes
}

// bySoonest returns the nodes, those first that are ready the soonest.
func (p *Problem) bySoonest() []int {
	nodes := make([]int, len(p.Nodes))
	for n := range nodes {
		nodes[n] = n
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(p.Nodes[a].At, p.Nodes[b].At) })
	return nodes
}
