package main

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// group is what is compared with each other: the contenders of one workload at one size.
type group struct {
	nodes    int
	workload string
}

func (r *run) group() group { return group{r.Nodes, r.Workload} }

// groupsOf returns the groups of the runs, small clusters first, workloads in the order in which they were measured.
func groupsOf(runs []run) []group {
	var groups []group
	for i := range runs {
		if g := runs[i].group(); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(a.nodes, b.nodes) })
	return groups
}

// values are a figure of the runs of a contender in a group.
func values(runs []run, g group, contender string, figure func(*run) float64) []float64 {
	var list []float64
	for i := range runs {
		if r := &runs[i]; r.group() == g && r.Contender == contender {
			list = append(list, figure(r))
		}
	}
	return list
}

// ratios are a figure of the runs of a contender in a group, each over that of stock in the same repeat. A repeat in
// which stock was not measured gives none.
func ratios(runs []run, g group, contender string, figure func(*run) float64) []float64 {
	stock := map[int]float64{}
	for i := range runs {
		if r := &runs[i]; r.group() == g && r.Contender == stockName {
			stock[r.Repeat] = figure(r)
		}
	}
	var list []float64
	for i := range runs {
		r := &runs[i]
		if base := stock[r.Repeat]; r.group() == g && r.Contender == contender && base > 0 {
			list = append(list, figure(r)/base)
		}
	}
	return list
}

// inTurn returns what is measured in a repeat: all, but each repeat begins with another one, so that none is always
// the first.
func inTurn[T any](all []T, repeat int) []T {
	first := repeat % len(all)
	return slices.Concat(all[first:], all[:first])
}

// histogram is how many observations there were up to and including each bound.
type histogram struct {
	upTo  map[float64]float64
	count float64
	sum   float64
}

// minus returns what was observed since before.
func (h histogram) minus(before histogram) histogram {
	since := histogram{map[float64]float64{}, h.count - before.count, h.sum - before.sum}
	for bound, n := range h.upTo {
		since.upTo[bound] = n - before.upTo[bound]
	}
	return since
}

// median estimates the middle observation: it takes those between two bounds to be spread evenly. It is 0 without any.
func (h histogram) median() float64 {
	if h.count == 0 {
		return 0
	}
	low, below := 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(h.upTo)) {
		n := h.upTo[bound]
		if n > below && n >= h.count/2 {
			if math.IsInf(bound, 1) {
				return low
			}
			return low + (bound-low)*(h.count/2-below)/(n-below)
		}
		low, below = bound, n
	}
	return low
}

// mean is 0 without observations.
func (h histogram) mean() float64 { return h.sum / max(h.count, 1) }
