package tree

import (
	"cmp"
	"slices"
)

// area is a domain with its nodes.
type area struct {
	home  Home
	nodes []int
}

// parts divides nodes into domains.
type parts struct {
	problem *Problem
	// domains holds by level the nodes of each domain, known what within has found.
	domains [][][]int
	known   map[partsKey]found
}

type partsKey struct {
	level  int
	around Home
}

// found is the domains of a level within an area: those with a place in the order of the level, in that order, and the
// others.
type found struct{ ordered, others []area }

func newParts(p *Problem) parts {
	of := parts{problem: p, domains: make([][][]int, len(p.Levels)), known: map[partsKey]found{}}
	for level, domains := range p.Levels {
		for n, d := range domains {
			if d == None {
				continue
			}
			for len(of.domains[level]) <= d {
				of.domains[level] = append(of.domains[level], nil)
			}
			of.domains[level][d] = append(of.domains[level][d], n)
		}
	}
	return of
}

// area is the home with its nodes, which may be none.
func (p *parts) area(home Home) area {
	switch {
	case home.Level != None && home.Domain >= len(p.domains[home.Level]):
		return area{home: home}
	case home.Level != None:
		return area{home, p.domains[home.Level][home.Domain]}
	}
	all := make([]int, len(p.problem.Nodes))
	for i := range all {
		all[i] = i
	}
	return area{home, all}
}

// within returns the domains of the level within the area.
func (p *parts) within(level int, around area) (ordered, others []area) {
	key := partsKey{level, around.home}
	if f, known := p.known[key]; known {
		return f.ordered, f.others
	}
	at := map[int]int{}
	var all []area
	for _, n := range around.nodes {
		d := p.problem.Levels[level][n]
		if d == None {
			continue
		}
		i, known := at[d]
		if !known {
			i = len(all)
			at[d] = i
			all = append(all, area{home: Home{level, d}})
		}
		all[i].nodes = append(all[i].nodes, n)
	}
	rank := map[int]int{}
	for i, d := range p.problem.Order[level] {
		rank[d] = i
	}
	var f found
	for _, a := range all {
		if _, ordered := rank[a.home.Domain]; ordered {
			f.ordered = append(f.ordered, a)
		} else {
			f.others = append(f.others, a)
		}
	}
	slices.SortFunc(f.ordered, func(a, b area) int { return cmp.Compare(rank[a.home.Domain], rank[b.home.Domain]) })
	p.known[key] = f
	return f.ordered, f.others
}
