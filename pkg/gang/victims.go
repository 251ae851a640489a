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

// unit is a set of pods that are evicted together or not at all: a single pod, a surplus member of a group, or the rest
// of a group. The rest takes the surplus of its group along, because what remains of a group below its minimum is of no
// use.
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
}

// budgetUse is how many evictions a unit takes from a PodDisruptionBudget.
type budgetUse struct{ budget, pods int }

// unitPart is what the eviction of a unit frees on one node.
type unitPart struct {
	unit, node int
	frees      Vector
}

// units divides the victims of the problem into units, the least important first. Pods that are too important or that a
// budget protects are in none of them, and neither is the rest of a group that has such a pod.
func (p *EvictProblem) units(resources []int) []unit {
	candidates := make([]int, 0, len(p.Victims))
	for i := range p.Victims {
		v := &p.Victims[i]
		protected := slices.ContainsFunc(v.Budgets, func(b int) bool { return p.Budgets[b] <= 0 })
		if v.Priority < p.Priority && !protected {
			candidates = append(candidates, i)
		}
	}
	candidates = byImportance(p.Victims, candidates)
	b := unitBuilder{p: p, resources: resources}
	b.units, b.parts = make([]unit, 0, len(candidates)), make([]unitPart, 0, len(candidates))
	b.memory = make([]int64, len(candidates)*len(resources))
	members := map[ID][]int{}
	var groups []ID
	for k, i := range candidates {
		id := p.Victims[i].Group
		if _, known := p.Groups[id]; !known || id == (ID{}) {
			b.add(candidates[k : k+1])
			continue
		}
		if members[id] == nil {
			groups = append(groups, id)
		}
		members[id] = append(members[id], i)
	}
	for _, id := range groups {
		g := p.Groups[id]
		surplus, rest := g.split(p.Victims, members[id])
		first := len(b.units)
		for k := range surplus {
			b.add(surplus[k : k+1])
		}
		if len(rest) == 0 || len(surplus)+len(rest) < g.Bound || !b.allowed(surplus, rest) {
			continue
		}
		whole := b.add(rest)
		b.units[whole].group = id
		for u := first; u < whole; u++ {
			b.units[u].whole = whole
			b.units[whole].surplus = append(b.units[whole].surplus, u)
			// With roles a surplus member can be more important than one that a role needs.
			b.units[whole].priority = max(b.units[whole].priority, b.units[u].priority)
		}
	}
	return b.units
}

type unitBuilder struct {
	p         *EvictProblem
	resources []int
	units     []unit
	// parts and memory hold the parts of all units and their vectors: one for each victim is enough.
	parts  []unitPart
	memory []int64
}

// allowed reports whether the budgets allow the eviction of all pods in the lists together.
func (b *unitBuilder) allowed(lists ...[]int) bool {
	need := map[int]int{}
	for _, list := range lists {
		for _, i := range list {
			for _, budget := range b.p.Victims[i].Budgets {
				if need[budget]++; need[budget] > b.p.Budgets[budget] {
					return false
				}
			}
		}
	}
	return true
}

// add appends a unit of the victims, which are in the order of their importance, and returns its index.
func (b *unitBuilder) add(victims []int) int {
	index := len(b.units)
	u := unit{victims: victims, whole: -1, priority: b.p.Victims[victims[len(victims)-1]].Priority}
	byNode := victims
	if len(victims) > 1 {
		byNode = slices.Clone(victims)
		slices.SortFunc(byNode, func(x, y int) int { return cmp.Compare(b.p.Victims[x].Node, b.p.Victims[y].Node) })
	}
	first := len(b.parts)
	for k, i := range byNode {
		v := &b.p.Victims[i]
		if started := v.Started.UnixMicro(); k == 0 || started < u.started {
			u.started = started
		}
		for _, budget := range v.Budgets {
			at := slices.IndexFunc(u.uses, func(use budgetUse) bool { return use.budget == budget })
			if at < 0 {
				at = len(u.uses)
				u.uses = append(u.uses, budgetUse{budget: budget})
			}
			u.uses[at].pods++
		}
		if v.Node < 0 {
			continue
		}
		if n := len(b.parts); n == first || b.parts[n-1].node != v.Node {
			dims := len(b.resources)
			b.parts = append(b.parts, unitPart{unit: index, node: v.Node, frees: b.memory[:dims:dims]})
			b.memory = b.memory[dims:]
		}
		frees := b.parts[len(b.parts)-1].frees
		for k, r := range b.resources {
			if r < len(v.Requests) {
				frees[k] += max(v.Requests[r], 0)
			}
		}
	}
	u.parts = b.parts[first:len(b.parts):len(b.parts)]
	b.units = append(b.units, u)
	return index
}
