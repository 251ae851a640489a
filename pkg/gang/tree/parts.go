package tree

import (
	"cmp"
	"slices"
)

// area is a domain with its nodes, and its place in the order of its level; unordered for none.
type area struct {
	home  Home
	nodes []int
	order int
}

const unordered = 1 << 30

// parts divides nodes into domains, in which they lie in the order of nodes.
type parts struct {
	problem *Problem
	nodes   []int
	// known is what within has found.
	known map[partsKey][]area
}

type partsKey struct {
	level  int
	around Home
}

func newParts(p *Problem) parts {
	return parts{problem: p, nodes: p.bySoonest(), known: map[partsKey][]area{}}
}

// area is the home with its nodes, which may be none.
func (p *parts) area(home Home) area {
	if home.Level == None {
		return area{home: home, nodes: p.nodes}
	}
	in := area{home: home}
	for _, n := range p.nodes {
		if d := p.problem.Levels[home.Level][n]; d != None && d == home.Domain {
			in.nodes = append(in.nodes, n)
		}
	}
	return in
}

// within returns the domains of the level within the area, those with a place in the order of the level first.
func (p *parts) within(level int, around area) []area {
	key := partsKey{level, around.home}
	if all, known := p.known[key]; known {
		return all
	}
	order, at := map[int]int{}, map[int]int{}
	for i, d := range p.problem.Order[level] {
		order[d] = i
	}
	var all []area
	for _, n := range around.nodes {
		d := p.problem.Levels[level][n]
		if d == None {
			continue
		}
		i, known := at[d]
		if !known {
			i = len(all)
			in := area{home: Home{level, d}, order: unordered}
			if place, ordered := order[d]; ordered {
				in.order = place
			}
			at[d], all = i, append(all, in)
		}
		all[i].nodes = append(all[i].nodes, n)
	}
	slices.SortStableFunc(all, func(a, b area) int { return cmp.Compare(a.order, b.order) })
	p.known[key] = all
	return all
}
