package sets

import (
	"fmt"
	"maps"
	"slices"

	"berth.dev/berth/pkg/gang/tree"
	"berth.dev/berth/pkg/topology"
)

// Arrange finds the order in which to fill the domains of the sets that are in no other but the gang, unless each has
// one alone: as few of the wider ones as possible. Paths holds the wider domains of nodes, the first required ones
// those of all members; held counts the members on nodes.
func (c *Problem) Arrange(paths [][]string, required int, held map[string]int, need int) {
	if paths == nil {
		paths = make([][]string, len(c.nodes))
	}
	c.Order = map[int][]int{}
	outer := map[int][]int{}
	var collect func(at int)
	collect = func(at int) {
		for _, within := range c.Sets[at].Sets {
			if c.Sets[within].Level == tree.None {
				collect(within)
			} else if c.Sets[within].Held == tree.None && !c.Sets[within].Alone {
				outer[c.Sets[within].Level] = append(outer[c.Sets[within].Level], within)
			}
		}
	}
	collect(0)
	for _, level := range slices.Sorted(maps.Keys(outer)) {
		order := c.orderOf(level, outer[level], paths, required, held, need)
		c.Order[level] = order
		if root := c.Sets[0].Level; root != tree.None && len(order) > 0 && c.Order[root] == nil {
			c.Order[root] = []int{c.Levels[root][slices.Index(c.Levels[level], order[0])]}
		}
	}
}

// orderOf is the order of the domains of one level for the sets.
func (c *Problem) orderOf(level int, sets []int, paths [][]string, required int, held map[string]int,
	need int) []int {
	domains := make([]topology.Node, len(c.levels[level].index))
	first := slices.Repeat([]int{tree.None}, len(domains))
	divided := map[int]bool{}
	for i, d := range c.Levels[level] {
		if d == tree.None {
			continue
		}
		if first[d] == tree.None {
			first[d] = i
		}
		for at := range paths[first[d]] {
			divided[at] = divided[at] || paths[i][at] != paths[first[d]][at]
		}
		domains[d].Held += held[c.nodes[i].Name]
	}
	for d := range domains {
		for at, name := range paths[first[d]] {
			if at < required || !divided[at] {
				domains[d].Path = append(domains[d].Path, name)
			}
		}
		domains[d].Path = append(domains[d].Path, fmt.Sprint(d))
	}
	var kinds, demand []int
	members := 0
	for _, set := range sets {
		members = max(members, len(c.all[set].members))
		at := slices.IndexFunc(kinds, func(of int) bool { return c.Same(of, set) })
		if at < 0 {
			at = len(kinds)
			kinds, demand = append(kinds, set), append(demand, 0)
		}
		demand[at]++
	}
	for at, kind := range kinds {
		times := c.Times(kind, demand[at])
		for d := range domains {
			domains[d].Slots = append(domains[d].Slots, times[d])
		}
	}
	least := min((need+max(members, 1)-1)/max(members, 1), len(sets))
	arrangements := topology.Arrange(domains, required, topology.Demand{Want: demand, Need: least})
	if len(arrangements) == 0 {
		return nil
	}
	return slices.Concat(arrangements[0]...)
}
