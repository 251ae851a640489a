package gang

import (
	"cmp"
	"slices"
	"time"
)

// Vector is an amount of each resource. The caller decides which resource has which index and in which unit it is
// counted. Entries that are missing at the end count as zero.
type Vector []int64

// Holds says whether there is as much of each resource as the demand asks for.
func (v Vector) Holds(demand Vector) bool {
	for r, amount := range demand {
		if amount > 0 && (r >= len(v) || v[r] < amount) {
			return false
		}
	}
	return true
}

// narrow copies the amounts of some resources.
func (v Vector) narrow(resources []int, to Vector) {
	for k, r := range resources {
		if r < len(v) {
			to[k] = v[r]
		}
	}
}

// Victim is a bound pod that may be evicted.
type Victim struct {
	UID UID
	// Node is an index into EvictProblem.Nodes. It is negative if the pod is on a node that is not part of the problem.
	Node     int
	Priority int32
	Started  time.Time
	Requests Vector
	// Holds is how much of each pool it holds.
	Holds Vector
	// Group is the zero ID for a pod without a group.
	Group ID
	// Role is the pod's role in its group.
	Role string
	// Budgets are the indices, in EvictProblem.Budgets, of the PodDisruptionBudgets that cover the pod.
	Budgets []int
}

// VictimGroup is what the choice of victims has to know about a group of which members may be evicted.
type VictimGroup struct {
	Minimum Minimum
	// Settled is the number of members that count towards the minimum: those that are bound and those that have
	// succeeded. SettledByRole is the same for each role that has a minimum.
	Settled       int
	SettledByRole map[string]int
	// Bound is the number of members that are bound or being bound. All of them have to be among the victims before the group can be
	// evicted as a whole; members that have succeeded need not.
	Bound int
	// AllOrNothing is set for a group that may be disrupted only as a whole, even if it has more members than its
	// minimum: a native group with disruptionMode all.
	AllOrNothing bool
}

// Surplus returns the indices of the members that the group can lose and still have its minimum, the least important
// first: the lowest priority, then the latest start. members are those that may be evicted. All pods returned may go
// together. A group that does not have its minimum has no surplus.
func Surplus(members []Victim, g VictimGroup) []int {
	all := make([]int, len(members))
	for i := range all {
		all[i] = i
	}
	surplus, _ := g.split(members, byImportance(members, all))
	return surplus
}

// spares returns how many members of a role the group can lose and still have its minimum.
func (g *VictimGroup) spares(role string) int {
	spare := g.Settled - g.Minimum.Total
	if g.AllOrNothing {
		return 0
	}
	for of, least := range g.Minimum.Roles {
		switch left := g.SettledByRole[of] - least; {
		case left < 0:
			return 0
		case of == role:
			spare = min(spare, left)
		}
	}
	return spare
}

// split divides the members into the surplus and those without which the group lacks its minimum. Both keep the order
// of members, which is that of their importance.
func (g VictimGroup) split(victims []Victim, members []int) (surplus, rest []int) {
	if g.AllOrNothing {
		return nil, members
	}
	left := g.Settled
	byRole := make(map[string]int, len(g.Minimum.Roles))
	for role := range g.Minimum.Roles {
		byRole[role] = g.SettledByRole[role]
	}
	count := func(role string) int { return byRole[role] }
	for _, i := range members {
		role := victims[i].Role
		left--
		byRole[role]--
		if g.Minimum.MetBy(left, count) {
			surplus = append(surplus, i)
			continue
		}
		left++
		byRole[role]++
		rest = append(rest, i)
	}
	return surplus, rest
}

// byImportance returns the victims of the list, the least important first: the lower priority, then the later start.
func byImportance(victims []Victim, list []int) []int {
	type key struct {
		priority int32
		started  int64
		index    int
	}
	keys := make([]key, len(list))
	for k, i := range list {
		keys[k] = key{victims[i].Priority, victims[i].Started.UnixMicro(), i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if order := cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(b.started, a.started)); order != 0 {
			return order
		}
		return cmp.Or(cmp.Compare(victims[a.index].UID, victims[b.index].UID), cmp.Compare(a.index, b.index))
	})
	sorted := make([]int, len(keys))
	for k := range keys {
		sorted[k] = keys[k].index
	}
	return sorted
}

// unit is a set of pods that are evicted together or not at all: a single pod, a member that a group may spare, or the
// rest of a group. The rest takes the other members along, because what remains of a group below its minimum is of no
// use. It has no pods of its own where each member alone could be spared.
type unit struct {
	victims []int
	// priority is the highest of the pods that go, started the earliest start in microseconds.
	priority int32
	started  int64
	// surplus holds the units that are evicted with this one, whole is the unit that takes this one along, or -1.
	surplus []int
	whole   int
	// group is set for the rest of a group.
	group ID
	uses  []budgetUse
	parts []unitPart
	// holds is how much of each pool its victims hold, holdsAll includes the units that go with it.
	holds, holdsAll Vector
}

// budgetUse is how many evictions a unit takes from a budget, or gives back to it.
type budgetUse struct{ budget, pods int }

// unitPart is what the eviction of a unit frees on one node. All includes what the units free that go with it.
type unitPart struct {
	unit, node int
	frees, all Vector
}

// units divides the victims of the problem into units, the least important first. Pods that are too important or that a
// budget protects are in none of them, and neither is the rest of a group that has such a pod.
//
// Which members a group spares depends on the nodes that are needed, so each that it may spare is a unit. How many go
// without the rest is bounded by further budgets after those of the problem: the rest gives them back, so that all go.
func (p *EvictProblem) units(resources []int) (units []unit, budgets []int) {
	candidates := make([]int, 0, len(p.Victims))
	for i := range p.Victims {
		v := &p.Victims[i]
		protected := slices.ContainsFunc(v.Budgets, func(b int) bool { return p.Budgets[b] <= 0 })
		if v.Priority < p.Priority && !protected {
			candidates = append(candidates, i)
		}
	}
	candidates = byImportance(p.Victims, candidates)
	b := unitBuilder{p: p, resources: resources, budgets: slices.Clone(p.Budgets)}
	b.units, b.parts = make([]unit, 0, len(candidates)), make([]unitPart, 0, 2*len(candidates))
	b.memory = make([]int64, 3*len(candidates)*len(resources))
	members := map[ID][]int{}
	var groups []ID
	for k, i := range candidates {
		id := p.Victims[i].Group
		if _, known := p.Groups[id]; !known || id == (ID{}) {
			b.add(candidates[k:k+1], nil)
			continue
		}
		if members[id] == nil {
			groups = append(groups, id)
		}
		members[id] = append(members[id], i)
	}
	for _, id := range groups {
		b.addGroup(id, members[id])
	}
	return b.units, b.budgets
}

type unitBuilder struct {
	p         *EvictProblem
	resources []int
	units     []unit
	budgets   []int
	// parts and memory hold the parts of all units and their vectors: two parts for each victim are enough.
	parts  []unitPart
	memory []int64
}

// addGroup appends the units of a group, of which the members are in the order of their importance.
func (b *unitBuilder) addGroup(id ID, members []int) {
	g := b.p.Groups[id]
	var surplus, rest []int
	for _, i := range members {
		if g.spares(b.p.Victims[i].Role) > 0 {
			surplus = append(surplus, i)
		} else {
			rest = append(rest, i)
		}
	}
	first, byRole := len(b.units), map[string]int{}
	for k, i := range surplus {
		b.add(surplus[k:k+1], nil)
		byRole[b.p.Victims[i].Role]++
	}
	bounds := b.bound(&g, surplus, byRole, first)
	if len(rest) == 0 && len(bounds) == 0 || len(members) < g.Bound || !b.allowed(members) {
		return
	}
	whole := b.add(rest, members)
	u := &b.units[whole]
	u.group, u.uses = id, append(u.uses, bounds...)
	u.holdsAll = slices.Clone(u.holds)
	for k := first; k < whole; k++ {
		b.units[k].whole = whole
		u.surplus = append(u.surplus, k)
		for i, amount := range b.units[k].holds {
			u.holdsAll[i] += amount
		}
	}
}

// bound makes budgets of how many of the surplus, in all and of each role, may go without the rest, and returns what the
// rest gives back to them. There are none if all may go.
func (b *unitBuilder) bound(g *VictimGroup, surplus []int, byRole map[string]int, first int) []budgetUse {
	var back []budgetUse
	limit := func(most, members int, concerns func(role string) bool) {
		if members == 0 || members <= most {
			return
		}
		budget := len(b.budgets)
		b.budgets = append(b.budgets, most)
		back = append(back, budgetUse{budget, -members})
		for k, i := range surplus {
			if concerns(b.p.Victims[i].Role) {
				u := &b.units[first+k]
				u.uses = append(u.uses, budgetUse{budget, 1})
			}
		}
	}
	limit(g.Settled-g.Minimum.Total, len(surplus), func(string) bool { return true })
	for _, role := range g.Minimum.sorted() {
		limit(g.SettledByRole[role]-g.Minimum.Roles[role], byRole[role], func(r string) bool { return r == role })
	}
	return back
}

// allowed reports whether the budgets allow the eviction of all the pods together.
func (b *unitBuilder) allowed(pods []int) bool {
	need := map[int]int{}
	for _, i := range pods {
		for _, budget := range b.p.Victims[i].Budgets {
			if need[budget]++; need[budget] > b.p.Budgets[budget] {
				return false
			}
		}
	}
	return true
}

// add appends a unit of the victims and returns its index. Members are all pods of a group that go with the unit, nil if
// these are the victims. Both are in the order of their importance.
func (b *unitBuilder) add(victims, members []int) int {
	index, own := len(b.units), members == nil
	if own {
		members = victims
	}
	u := unit{victims: victims, whole: -1, priority: b.p.Victims[members[len(members)-1]].Priority, holds: make(Vector, len(b.p.Pools))}
	u.holdsAll = u.holds
	byNode := members
	if len(members) > 1 {
		byNode = slices.Clone(members)
		slices.SortFunc(byNode, func(x, y int) int { return cmp.Compare(b.p.Victims[x].Node, b.p.Victims[y].Node) })
	}
	first := len(b.parts)
	for k, i := range byNode {
		v := &b.p.Victims[i]
		if started := v.Started.UnixMicro(); k == 0 || started < u.started {
			u.started = started
		}
		mine := own || slices.Contains(victims, i)
		if mine {
			u.use(v.Budgets)
			for pool, amount := range v.Holds {
				u.holds[pool] += max(amount, 0)
			}
		}
		if v.Node < 0 {
			continue
		}
		if n := len(b.parts); n == first || b.parts[n-1].node != v.Node {
			part := unitPart{unit: index, node: v.Node, frees: b.vector()}
			if part.all = part.frees; !own {
				part.all = b.vector()
			}
			b.parts = append(b.parts, part)
		}
		part := &b.parts[len(b.parts)-1]
		for k, r := range b.resources {
			if r >= len(v.Requests) {
				continue
			}
			if mine {
				part.frees[k] += max(v.Requests[r], 0)
			}
			if !own {
				part.all[k] += max(v.Requests[r], 0)
			}
		}
	}
	u.parts = b.parts[first:len(b.parts):len(b.parts)]
	b.units = append(b.units, u)
	return index
}

// use counts an eviction from each of the budgets.
func (u *unit) use(budgets []int) {
	for _, budget := range budgets {
		at := slices.IndexFunc(u.uses, func(use budgetUse) bool { return use.budget == budget })
		if at < 0 {
			at = len(u.uses)
			u.uses = append(u.uses, budgetUse{budget: budget})
		}
		u.uses[at].pods++
	}
}

// vector takes a vector of zeros from the memory.
func (b *unitBuilder) vector() Vector {
	dims := len(b.resources)
	v := b.memory[:dims:dims]
	b.memory = b.memory[dims:]
	return v
}
