package topology

import (
	"cmp"
	"slices"
)

const (
	// mostSplits is how many selections of several domains are followed from one level to the next.
	mostSplits = 64
	// The domains that are looked at on one level are bounded by the greater of a multiple of the number of nodes and
	// a number that small clusters do not reach.
	visitsPerNode, leastVisits = 4, 20000
)

// selection is a choice of domains of one level that together take all wanted members.
type selection struct {
	// root is the domain of the narrowest required level in which all lie.
	root *domain
	// domains are in the order in which to fill them.
	domains []*domain
	// spans is how many domains are used of each preferred level so far, apart from those that hold members already.
	spans []int
	// left is how much room the chosen domains of each level leave over.
	left []int
}

// search goes down level by level from each root that takes all wanted members, and returns selections of narrowest
// domains, best first. It is a beam search: of the selections of several domains only the best are followed. All single
// domains are, because they share no nodes.
func search(roots []*domain, levels int, want []int, nodes int) []selection {
	var found []selection
	for _, r := range roots {
		if r.size == sum(want) {
			found = append(found, selection{root: r, domains: []*domain{r}})
		}
	}
	for range levels {
		var next []selection
		visited := 0
		for i := range found {
			if visited > max(visitsPerNode*nodes, leastVisits) {
				break
			}
			visited += found[i].width()
			next = append(next, found[i].expand(want)...)
		}
		slices.SortFunc(next, compareSelections)
		splits := 0
		found = slices.DeleteFunc(next, func(s selection) bool {
			if len(s.domains) > 1 {
				splits++
			}
			return len(s.domains) > 1 && splits > mostSplits
		})
	}
	return found
}

func compareSelections(a, b selection) int {
	if c := slices.Compare(a.spans, b.spans); c != 0 {
		return c
	}
	for level := len(a.left) - 1; level >= 0; level-- {
		if c := cmp.Compare(a.left[level], b.left[level]); c != 0 {
			return c
		}
	}
	return compareSets(a.domains, b.domains)
}

// width is the number of domains in which the next level is chosen.
func (s *selection) width() int {
	n := 0
	for _, d := range s.domains {
		n += max(len(d.children), 1)
	}
	return n
}

// expand returns selections of the next narrower level within this one, each of as few domains as were found.
func (s *selection) expand(want []int) []selection {
	rest := slices.Clone(want)
	var free []*domain
	others := make([]*domain, 0, s.width())
	for i, d := range s.domains {
		children := d.children
		if d.alone {
			children = s.domains[i : i+1]
		}
		for _, c := range children {
			switch {
			case c.size == 0:
			case c.held > 0:
				free = append(free, c)
				c.take(rest)
			default:
				others = append(others, c)
			}
		}
	}
	choices := choose(others, rest)
	out := make([]selection, len(choices))
	for i, chosen := range choices {
		left := -want[0]
		domains := slices.Concat(free, chosen)
		for _, d := range domains {
			left += d.first()
		}
		slices.SortFunc(domains, byOrder)
		out[i] = selection{
			root: s.root, domains: domains, spans: appended(s.spans, len(chosen)), left: appended(s.left, left),
		}
	}
	return out
}

// appended is append to a copy.
func appended(to []int, n int) []int { return append(slices.Clip(to), n) }

// sets returns the nodes with slots of each domain, and their number.
func (s *selection) sets() (sets [][]int, nodes int) {
	together := map[*domain]bool{}
	for _, d := range s.domains {
		set := d.nodes
		if d.alone && d.held == 0 {
			if together[d.parent] {
				continue
			}
			together[d.parent] = true
			set = nil
			for _, c := range d.parent.children {
				if c.alone && c.held == 0 {
					set = append(set, c.nodes...)
				}
			}
		}
		sets = append(sets, set)
		nodes += len(set)
	}
	return sets, nodes
}
