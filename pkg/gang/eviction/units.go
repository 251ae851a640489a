package eviction

import (
	"cmp"
	"slices"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

// unit is a set of pods that are evicted together or not at all: a single pod, a member that its group may spare, or
// several that go together only, or a whole group or group within it, because what remains of it below its minimum is
// of no use. The units inside one that is gone do not count as gone besides.
type unit struct {
	victims []int
	// inside are the units whose pods are among its own, and around those that have all of its pods.
	inside, around []int
	// group is an index into prepared.groups, -1 for a single pod. whole is set if the unit is all of it.
	group int
	whole bool
	cost  costLevel
	// started is the earliest start in microseconds.
	started int64
	parts   []part
	uses    []use
}

// use is how many evictions a unit takes from a budget.
type use struct{ budget, pods int }

// part is what the eviction of a unit frees on one node.
type part struct {
	unit, node int
	frees      Vector
}

// importance returns the victims of the list, the least important first: the lower rank, then the least lost, then the
// later start.
func (p *Problem) importance(list []int) []int {
	slices.SortFunc(list, func(a, b int) int {
		x, y := &p.Victims[a], &p.Victims[b]
		order := cmp.Or(x.rank().compare(y.rank()), cmp.Compare(x.Lost, y.Lost), y.Started.Compare(x.Started))
		return cmp.Or(order, cmp.Compare(x.UID, y.UID), cmp.Compare(a, b))
	})
	return list
}

// addUnits divides the victims into units. Pods that are too important or that a budget protects are in none of them,
// and neither is the rest of a group that has such a pod.
func (p *prepared) addUnits() {
	members, list := map[gang.ID][]int{}, make([]int, 0, len(p.Victims))
	for i := range p.Victims {
		v := &p.Victims[i]
		protected := slices.ContainsFunc(v.Budgets, func(b int) bool { return p.Budgets[b] <= 0 })
		if v.Priority < p.Priority && !protected {
			list = append(list, i)
		}
	}
	var ids []gang.ID
	list = p.importance(list)
	p.units, p.parts = make([]unit, 0, len(list)), make([]part, 0, 2*len(list))
	for k, i := range list {
		id := p.Victims[i].Group
		if _, known := p.Groups[id]; !known || id == (gang.ID{}) {
			p.addUnit(-1, list[k:k+1])
			continue
		}
		if members[id] == nil {
			ids = append(ids, id)
		}
		members[id] = append(members[id], i)
	}
	for _, id := range ids {
		p.addGroup(p.Groups[id], members[id])
	}
}

// addGroup adds the units of a group. Which members it spares depends on the nodes that are needed, so each that it may
// spare is a unit. Its members are in the order of their importance.
func (p *prepared) addGroup(g Group, members []int) {
	index, first := len(p.groups), len(p.units)
	var all loss
	for k, i := range members {
		all.add(p.Victims[i].Role, 1)
		if set := p.together(&g, members, k); set != nil {
			p.addUnit(index, set)
		}
	}
	bound := 0
	for _, n := range g.BoundByRole {
		bound += n
	}
	if g.Minimum.Tree != nil && bound == g.Bound { // else one is on its way to a node
		g.Minimum.Tree.Optional(func(of *tree.Group) {
			if set := p.within(&g, of, members); set != nil {
				p.enclose(index, set, first)
			}
		})
	}
	if len(members) >= g.Bound && !g.tolerates(all) && p.enclose(index, members, first) {
		p.units[len(p.units)-1].whole = true
	}
	p.groups = append(p.groups, g)
}

// within returns the members of a group within that go when it goes as a whole; nil if not all of it may go, if the
// rest does not tolerate that, or if there is such a unit already.
func (p *prepared) within(g *Group, of *tree.Group, members []int) []int {
	var set []int
	var lost loss
	with := map[string]int{}
	for _, i := range members {
		if v := &p.Victims[i]; of.Has(v.Role) {
			set = append(set, i)
			lost.add(v.Role, 1)
			with[v.With]++
		}
	}
	for name, n := range with {
		if name != "" && (n < g.Together[name] || n == len(set)) {
			return nil
		}
	}
	for role, bound := range g.BoundByRole {
		if of.Has(role) && lost.byRole[role] < bound {
			return nil
		}
	}
	if len(set) < 2 || !g.tolerates(lost) {
		return nil
	}
	return set
}

// enclose adds a unit around those of the units of its group, from the first on, that are inside it. It reports whether
// budgets allow it.
func (p *prepared) enclose(group int, victims []int, first int) bool {
	at := len(p.units)
	if !p.addUnit(group, victims) {
		return false
	}
	in := make(map[int]bool, len(victims))
	for _, i := range victims {
		in[i] = true
	}
	for u := first; u < at; u++ {
		if in[p.units[u].victims[0]] {
			p.units[at].inside = append(p.units[at].inside, u)
			p.units[u].around = append(p.units[u].around, at)
		}
	}
	return true
}

// together returns the members, from the one at k on, that go when this one goes without the rest of its group. There
// are none if the group does not spare them, if not all of them may go, or if one before k is among them.
func (p *prepared) together(g *Group, members []int, k int) []int {
	set, with := members[k:k+1], p.Victims[members[k]].With
	if with != "" {
		same := func(i int) bool { return p.Victims[i].With == with }
		if slices.ContainsFunc(members[:k], same) {
			return nil
		}
		set = slices.DeleteFunc(slices.Clone(members[k:]), func(i int) bool { return !same(i) })
	}
	var lost loss
	for _, i := range set {
		lost.add(p.Victims[i].Role, 1)
	}
	if !g.tolerates(lost) || len(set) < g.Together[with] {
		return nil
	}
	return set
}

// addUnit adds a unit of victims, and reports whether budgets allow it.
func (p *prepared) addUnit(group int, victims []int) bool {
	index, first := len(p.units), len(p.parts)
	u := unit{victims: victims, group: group, cost: p.costOf(victims)}
	byNode := victims
	if len(victims) > 1 {
		byNode = slices.Clone(victims)
		slices.SortFunc(byNode, func(a, b int) int { return cmp.Compare(p.Victims[a].Node, p.Victims[b].Node) })
	}
	for k, i := range byNode {
		v := &p.Victims[i]
		if started := v.Started.UnixMicro(); k == 0 || started < u.started {
			u.started = started
		}
		for _, budget := range v.Budgets {
			at := slices.IndexFunc(u.uses, func(use use) bool { return use.budget == budget })
			if at < 0 {
				at = len(u.uses)
				u.uses = append(u.uses, use{budget: budget})
			}
			if u.uses[at].pods++; u.uses[at].pods > p.Budgets[budget] {
				p.parts = p.parts[:first]
				return false
			}
		}
		if v.Node < 0 {
			continue
		}
		if n := len(p.parts); n == first || p.parts[n-1].node != v.Node {
			p.parts = append(p.parts, part{unit: index, node: v.Node, frees: make(Vector, p.dims)})
		}
		frees := p.parts[len(p.parts)-1].frees
		for r, amount := range v.Requests[:min(len(v.Requests), p.dims)] {
			frees[r] += max(amount, 0)
		}
	}
	u.parts = p.parts[first:len(p.parts):len(p.parts)]
	p.units = append(p.units, u)
	return true
}

// compareImportance orders units, the least important first: the lower rank, then the later start.
func (p *prepared) compareImportance(a, b int) int {
	x, y := &p.units[a], &p.units[b]
	return cmp.Or(x.cost.compare(y.cost.rank), cmp.Compare(y.started, x.started), cmp.Compare(a, b))
}
