package eviction

import (
	"cmp"
	"fmt"
	"slices"

	"berth.dev/berth/pkg/gang"
)

// reckoning is what is true of a set of evictions, reckoned without any code of the search.
type reckoning struct {
	p    *Problem
	gone []bool
}

// illegal says which rule the evictions break, or nothing.
func (k reckoning) illegal() string {
	spent := make([]int, len(k.p.Budgets))
	lost, lostByRole := map[gang.ID]int{}, map[gang.ID]map[string]int{}
	for i, v := range k.p.Victims {
		if !k.gone[i] {
			continue
		}
		if v.Priority >= k.p.Priority {
			return fmt.Sprintf("%s has priority %d", v.UID, v.Priority)
		}
		for _, b := range v.Budgets {
			if spent[b]++; spent[b] > k.p.Budgets[b] {
				return fmt.Sprintf("budget %d allows %d evictions", b, k.p.Budgets[b])
			}
		}
		lost[v.Group]++
		if lostByRole[v.Group] == nil {
			lostByRole[v.Group] = map[string]int{}
		}
		lostByRole[v.Group][v.Role]++
	}
	for id, n := range lost {
		g, known := k.p.Groups[id]
		if !known {
			continue
		}
		for with, bound := range g.Together {
			gone := 0
			for i, v := range k.p.Victims {
				if k.gone[i] && v.Group == id && v.With == with {
					gone++
				}
			}
			if gone > 0 && gone < bound {
				return fmt.Sprintf("group %s loses %d of the %d members %s that go together", id, gone, bound, with)
			}
		}
		if n < g.Bound && g.AllOrNothing {
			return fmt.Sprintf("group %s loses %d of %d", id, n, g.Bound)
		}
		role := func(r string) int { return g.SettledByRole[r] - lostByRole[id][r] }
		if rest := k.useless(id); n < g.Bound && rest != "" {
			return rest
		}
		if n < g.Bound && !g.Minimum.MetBy(g.Settled-n, role) {
			return fmt.Sprintf("group %s is left with %d of at least %v", id, g.Settled-n, g.Minimum)
		}
	}
	return ""
}

// free is what a node has free after the evictions.
func (k reckoning) free(node int) Vector {
	free := slices.Clone(k.p.Nodes[node].Free)
	for i, v := range k.p.Victims {
		if k.gone[i] && v.Node == node {
			for r := range free {
				free[r] += v.Requests[r]
			}
		}
	}
	return free
}

// fits reports whether the gang can be placed on some domain, trying every placement, or all sets that are needed.
func (k reckoning) fits() bool {
	if k.p.Tree != nil {
		return k.treeFits()
	}
	domains := k.p.Domains
	if domains == nil {
		all := make([]int, len(k.p.Nodes))
		for n := range all {
			all[n] = n
		}
		domains = [][]int{all}
	}
	return slices.ContainsFunc(domains, func(nodes []int) bool {
		free := map[int]Vector{}
		for _, n := range nodes {
			free[n] = k.free(n)
		}
		return k.pack(nodes, free, 0, 0, 0, map[string]int{})
	})
}

// pack tries every number of members of each class on each node.
func (k reckoning) pack(nodes []int, free map[int]Vector, class, at, used int, counts map[string]int) bool {
	total := counts["total"]
	if k.p.Need.MetBy(total, func(role string) int { return counts["role "+role] }) {
		return true
	}
	if class == len(k.p.Classes) {
		return false
	}
	if at == len(nodes) {
		return k.pack(nodes, free, class+1, 0, 0, counts)
	}
	c, n := k.p.Classes[class], nodes[at]
	if c.Fits == nil || c.Fits[n] {
		can := used < c.Count
		for r, amount := range c.Demand {
			can = can && (amount == 0 || free[n][r] >= amount)
		}
		if can {
			for r, amount := range c.Demand {
				free[n][r] -= amount
			}
			counts["total"]++
			counts["role "+c.Role]++
			found := k.pack(nodes, free, class, at, used+1, counts)
			counts["total"]--
			counts["role "+c.Role]--
			for r, amount := range c.Demand {
				free[n][r] += amount
			}
			if found {
				return true
			}
		}
	}
	return k.pack(nodes, free, class, at+1, used, counts)
}

// reckoned is what is lost of one importance.
type reckoned struct {
	lost int64
	pods int
}

// cost is the work and the number of pods that go by importance, all pods of a group that goes as a whole with its
// highest.
func (k reckoning) cost() map[int32]reckoned {
	cost := map[int32]reckoned{}
	for i, v := range k.p.Victims {
		if k.gone[i] {
			sum := cost[k.importance(v)]
			cost[k.importance(v)] = reckoned{sum.lost + v.Lost, sum.pods + 1}
		}
	}
	return cost
}

// importance is twice the priority, and one more for protected pods.
func (k reckoning) importance(v Victim) int32 {
	of := func(v Victim) int32 {
		if v.Protected {
			return 2*v.Priority + 1
		}
		return 2 * v.Priority
	}
	highest := of(v)
	for j, o := range k.p.Victims {
		if k.gone[j] && k.goesWith(v, o) {
			highest = max(highest, of(o))
		}
	}
	return highest
}

// goesWith reports whether both are evicted together only: of a group that goes whole, or of a part that does.
func (k reckoning) goesWith(v, o Victim) bool {
	_, known := k.p.Groups[v.Group]
	return known && o.Group == v.Group && (k.whole(v.Group) || v.With != "" && o.With == v.With ||
		o.Role == v.Role && k.within(v.Group, v.Role))
}

// whole reports whether a group has to go as a whole, because it loses more than it spares.
func (k reckoning) whole(id gang.ID) bool {
	g, lost, lostByRole := k.p.Groups[id], 0, map[string]int{}
	for i, v := range k.p.Victims {
		if k.gone[i] && v.Group == id {
			lost++
			lostByRole[v.Role]++
		}
	}
	role := func(r string) int { return g.SettledByRole[r] - lostByRole[r] }
	return lost > 0 && (g.AllOrNothing || !g.Minimum.MetBy(g.Settled-lost, role))
}

// sparable names a pod, or the group that goes with it, that could stay, or nothing.
func (k reckoning) sparable() string {
	without := func(stay func(i int, v Victim) bool) bool {
		fewer := reckoning{k.p, slices.Clone(k.gone)}
		for i, v := range k.p.Victims {
			if stay(i, v) {
				fewer.gone[i] = false
			}
		}
		return fewer.fits() && fewer.illegal() == ""
	}
	for i, v := range k.p.Victims {
		if !k.gone[i] {
			continue
		}
		if without(func(j int, o Victim) bool { return j == i || k.goesWith(v, o) }) {
			return fmt.Sprintf("%s of group %s", v.UID, v.Group)
		}
	}
	return ""
}

// compareReckoned compares costs: less work and then fewer pods of the highest importance, then of the next.
func compareReckoned(a, b map[int32]reckoned) int {
	for importance := int32(41); importance >= 0; importance-- {
		x, y := a[importance], b[importance]
		if c := cmp.Or(cmp.Compare(x.lost, y.lost), cmp.Compare(x.pods, y.pods)); c != 0 {
			return c
		}
	}
	return 0
}

// bruteForce returns the cheapest legal set of victims that lets the gang start, trying every one.
func bruteForce(p *Problem) (best []bool) {
	k := reckoning{p, make([]bool, len(p.Victims))}
	for set := range 1 << len(p.Victims) {
		for i := range k.gone {
			k.gone[i] = set&(1<<i) != 0
		}
		if k.illegal() != "" {
			continue
		}
		if !k.fits() {
			continue
		}
		if none := set == 0; none {
			return slices.Clone(k.gone)
		}
		if best == nil || compareReckoned(k.cost(), reckoning{p, best}.cost()) < 0 {
			best = slices.Clone(k.gone)
		}
	}
	return best
}

// wrongWith says which promise of Choose an answer breaks, or nothing.
func wrongWith(p *Problem, e Plan) string {
	k := reckoning{p, make([]bool, len(p.Victims))}
	for _, i := range e.Victims {
		k.gone[i] = true
	}
	switch {
	case e.Reason != "" && len(e.Victims)+len(e.Groups)+len(e.Placed) > 0:
		return fmt.Sprintf("it does not fit, but %+v", e)
	case e.Reason != "":
		return ""
	}
	if rule := k.illegal(); rule != "" {
		return rule
	}
	if p.Tree != nil && !k.fits() {
		return "not all sets have room"
	}
	for _, id := range e.Groups {
		lost := 0
		for i, v := range p.Victims {
			if k.gone[i] && v.Group == id {
				lost++
			}
		}
		if lost < p.Groups[id].Bound {
			return fmt.Sprintf("group %s is said to go, but %d of %d stay", id, p.Groups[id].Bound-lost, p.Groups[id].Bound)
		}
	}
	if wrong := k.misplaced(e.Placed); wrong != "" {
		return wrong
	}
	if len(p.Classes) > 1 || p.Tree != nil {
		// What fits is found by packing or by a search then, which is not always the best.
		return ""
	}
	if unit := k.sparable(); unit != "" {
		return unit + " could stay"
	}
	return ""
}

// misplaced says what is wrong with a placement, or nothing.
func (k reckoning) misplaced(assignments []Placement) string {
	free := map[string]Vector{}
	index := map[string]int{}
	for n := range k.p.Nodes {
		free[k.p.Nodes[n].Name], index[k.p.Nodes[n].Name] = k.free(n), n
	}
	count, byRole, total := make([]int, len(k.p.Classes)), map[string]int{}, 0
	for _, a := range assignments {
		c := k.p.Classes[a.Class]
		if c.Fits != nil && !c.Fits[index[a.Node]] || a.Members < 1 {
			return fmt.Sprintf("%+v is not possible", a)
		}
		for r, amount := range c.Demand {
			if free[a.Node][r] -= amount * int64(a.Members); amount > 0 && free[a.Node][r] < 0 {
				return fmt.Sprintf("%+v has no room", a)
			}
		}
		count[a.Class] += a.Members
		byRole[c.Role] += a.Members
		total += a.Members
	}
	for i, c := range k.p.Classes {
		if count[i] > c.Count {
			return fmt.Sprintf("%d members of class %d are placed, there are %d", count[i], i, c.Count)
		}
	}
	if !k.p.Need.MetBy(total, func(role string) int { return byRole[role] }) {
		return fmt.Sprintf("%d members are placed, %v by role, of at least %+v", total, byRole, k.p.Need)
	}
	in := func(domain []int) bool {
		return !slices.ContainsFunc(assignments, func(a Placement) bool { return !slices.Contains(domain, index[a.Node]) })
	}
	if k.p.Domains != nil && !slices.ContainsFunc(k.p.Domains, in) {
		return "no domain holds all members"
	}
	return ""
}
