// Package topology groups nodes into domains of a level (an NVLink clique, a rack, a block, a zone) and says in which
// order the domains are to be tried for a group of pods that has to stay together.
package topology

import (
	"cmp"
	"slices"
)

// Node is what is known of one node.
type Node struct {
	// Within holds the domain of the node at each level, the widest level first; empty if it lies in none.
	Within []string
	// Slots bounds from above how many members the node can take.
	Slots int
}

// Domain is a set of nodes that share their domain at a level and at all wider levels.
type Domain struct {
	// Level is the index into Within of the level; -1 is the whole cluster.
	Level int
	// Name is the domain's name at that level.
	Name string
	// Nodes are the indices of its nodes, in order.
	Nodes []int
	// Slots bounds from above how many members the domain can take.
	Slots int
}

// Domains returns the domains of a level in the order of their first nodes. Level -1 is the whole cluster.
func Domains(nodes []Node, level int) []Domain {
	if level < 0 {
		all := Domain{Level: -1, Nodes: make([]int, len(nodes))}
		for i := range nodes {
			all.Nodes[i] = i
			all.Slots += nodes[i].Slots
		}
		return []Domain{all}
	}
	var domains []Domain
	index := map[string]int{}
	for i := range nodes {
		within := nodes[i].Within[:level+1]
		if slices.Contains(within, "") {
			continue
		}
		// A length before each name keeps ("a", "b/c") apart from ("a/b", "c").
		key := ""
		for _, name := range within {
			key += string(rune(len(name))) + name
		}
		d, known := index[key]
		if !known {
			d = len(domains)
			index[key] = d
			domains = append(domains, Domain{Level: level, Name: within[level]})
		}
		domains[d].Nodes = append(domains[d].Nodes, i)
		domains[d].Slots += nodes[i].Slots
	}
	return domains
}

// Candidates returns the domains that may hold need members, in the order in which they are to be tried: the narrower
// level first, down from tightest to widest; within a level the domain that want members leave the least of, because a
// large domain is to be kept for a group that needs it; then by name.
func Candidates(nodes []Node, tightest, widest, need, want int) []Domain {
	var out []Domain
	for level := tightest; level >= widest; level-- {
		domains := slices.DeleteFunc(Domains(nodes, level), func(d Domain) bool { return d.Slots < need })
		slices.SortStableFunc(domains, func(a, b Domain) int {
			// A domain that takes all that want to come goes before one that takes only those that are needed.
			if whole, other := a.Slots >= want, b.Slots >= want; whole != other {
				if whole {
					return -1
				}
				return 1
			}
			if a.Slots < want {
				return cmp.Or(cmp.Compare(b.Slots, a.Slots), cmp.Compare(a.Name, b.Name))
			}
			return cmp.Or(cmp.Compare(a.Slots, b.Slots), cmp.Compare(a.Name, b.Name))
		})
		out = append(out, domains...)
	}
	return out
}
