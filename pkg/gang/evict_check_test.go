package gang

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// draw returns a number between least and most, both included.
type draw func(name string, least, most int) int

// size bounds the problems that drawProblem draws.
type size struct{ nodes, victims, groups, classes, members, budgets int }

// drawProblem draws a problem in which units are few and everything that the rules know occurs.
func drawProblem(d draw, most size) *EvictProblem {
	p := &EvictProblem{Priority: 10, Groups: map[ID]VictimGroup{}}
	dims := d("resources", 1, 2)
	vector := func(name string, least, most int) Vector {
		v := make(Vector, dims)
		for r := range v {
			v[r] = int64(d(name, least, most))
		}
		return v
	}
	for i := range d("nodes", 1, most.nodes) {
		p.Nodes = append(p.Nodes, EvictNode{Name: fmt.Sprintf("n%d", i), Free: vector("free", -1, 4)})
	}
	roles := []string{"", "leader"}
	for range d("classes", 1, most.classes) {
		c := EvictClass{Demand: vector("demand", 0, 4), Count: d("count", 0, most.members)}
		if most.classes > 1 {
			c.Role = roles[d("role", 0, 1)]
		}
		if d("picky", 0, 3) == 0 {
			for range p.Nodes {
				c.Fits = append(c.Fits, d("fits", 0, 1) == 1)
			}
		}
		p.Classes = append(p.Classes, c)
	}
	p.Need.Total = d("total", 0, most.members)
	if most.classes > 1 && d("roles", 0, 1) == 1 {
		p.Need.Roles = map[string]int{"leader": d("leaders", 0, 2)}
	}
	if d("wanting", 0, 5) == 0 {
		p.Wanted = vector("wanted", 0, 8)
	}
	if d("domains", 0, 3) == 0 {
		p.Domains = []EvictDomain{}
		for rank := range d("ranks", 1, 2) {
			for range d("of a rank", 1, 2) {
				domain := EvictDomain{Rank: rank}
				for n := range p.Nodes {
					if d("within", 0, 1) == 1 {
						domain.Nodes = append(domain.Nodes, n)
					}
				}
				p.Domains = append(p.Domains, domain)
			}
		}
	}
	for range d("budgets", 0, most.budgets) {
		p.Budgets = append(p.Budgets, d("allowed", 0, 3))
	}
	groups := d("groups", 0, most.groups)
	for i := range d("victims", 0, most.victims) {
		v := Victim{
			UID: UID(fmt.Sprintf("v%d", i)), Node: d("node", 0, len(p.Nodes)-1), Priority: int32(d("priority", 7, 10)),
			Started: t0.Add(time.Duration(d("started", 0, 2)) * time.Minute), Requests: vector("requests", 0, 4),
		}
		if d("elsewhere", 0, 20) == 0 {
			v.Node = -1
		}
		if g := d("group", 0, groups); g > 0 {
			v.Group = ID{Namespace: "ns", Name: fmt.Sprintf("g%d", g)}
			v.Role = roles[d("its role", 0, 1)]
			group := p.Groups[v.Group]
			group.Bound++
			group.Settled++
			if v.Role != "" {
				group.SettledByRole = map[string]int{v.Role: group.SettledByRole[v.Role] + 1}
			}
			p.Groups[v.Group] = group
		}
		for b := range p.Budgets {
			if d("covers", 0, 2) == 0 {
				v.Budgets = append(v.Budgets, b)
			}
		}
		p.Victims = append(p.Victims, v)
	}
	for i := range groups {
		id := ID{Namespace: "ns", Name: fmt.Sprintf("g%d", i+1)}
		g, known := p.Groups[id]
		if !known {
			continue
		}
		g.Minimum.Total = d("minimum", 0, 4)
		if d("by role", 0, 3) == 0 {
			g.Minimum.Roles = map[string]int{"leader": d("minimum of leaders", 0, 2)}
		}
		g.Settled += max(d("succeeded", -3, 2), 0)
		g.Bound += max(d("immune", -5, 1), 0)
		g.AllOrNothing = d("whole", 0, 4) == 0
		p.Groups[id] = g
		if d("unknown", 0, 9) == 0 {
			delete(p.Groups, id)
		}
	}
	return p
}

// reckoning is what is true of a set of evictions, reckoned without any code of the search.
type reckoning struct {
	p    *EvictProblem
	gone []bool
}

// illegal says which rule the evictions break, or nothing.
func (k reckoning) illegal() string {
	spent := make([]int, len(k.p.Budgets))
	lost, lostByRole := map[ID]int{}, map[ID]map[string]int{}
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
		if n < g.Bound && g.AllOrNothing {
			return fmt.Sprintf("group %s loses %d of %d", id, n, g.Bound)
		}
		role := func(r string) int { return g.SettledByRole[r] - lostByRole[id][r] }
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

// wanted reports whether the minimum resources are free.
func (k reckoning) wanted() bool {
	sum := make(Vector, len(k.p.Nodes[0].Free))
	for n := range k.p.Nodes {
		for r, amount := range k.free(n) {
			sum[r] += max(amount, 0)
		}
	}
	for r, amount := range k.p.Wanted {
		if sum[r] < amount {
			return false
		}
	}
	return true
}

// fits reports whether the gang can be placed on some domain, trying every placement. Rank is that of the domain.
func (k reckoning) fits() (rank int, ok bool) {
	if !k.wanted() {
		return 0, false
	}
	domains := k.p.Domains
	if domains == nil {
		all := EvictDomain{}
		for n := range k.p.Nodes {
			all.Nodes = append(all.Nodes, n)
		}
		domains = []EvictDomain{all}
	}
	for _, d := range domains {
		free := map[int]Vector{}
		for _, n := range d.Nodes {
			free[n] = k.free(n)
		}
		if k.pack(d.Nodes, free, 0, 0, 0, map[string]int{}) && (!ok || d.Rank < rank) {
			rank, ok = d.Rank, true
		}
	}
	return rank, ok
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

// cost is the number of pods that go by priority, all pods of a group that goes as a whole with its highest.
func (k reckoning) cost() map[int32]int {
	cost := map[int32]int{}
	for i, v := range k.p.Victims {
		if k.gone[i] {
			cost[k.importance(i, v)]++
		}
	}
	return cost
}

func (k reckoning) importance(i int, v Victim) int32 {
	g, known := k.p.Groups[v.Group]
	if !known {
		return v.Priority
	}
	lost, highest := 0, v.Priority
	for j, o := range k.p.Victims {
		if k.gone[j] && o.Group == v.Group {
			lost++
			highest = max(highest, o.Priority)
		}
	}
	if !g.AllOrNothing && slices.Contains(k.surplus(v.Group), i) && lost < g.Bound {
		return v.Priority
	}
	return highest
}

// surplus returns the members of a group that may go without the others.
func (k reckoning) surplus(id ID) []int {
	var members []Victim
	var index []int
	for i, v := range k.p.Victims {
		if v.Group == id && v.Priority < k.p.Priority && !slices.ContainsFunc(v.Budgets, func(b int) bool { return k.p.Budgets[b] <= 0 }) {
			members, index = append(members, v), append(index, i)
		}
	}
	var out []int
	for _, m := range Surplus(members, k.p.Groups[id]) {
		out = append(out, index[m])
	}
	return out
}

// sparable names a pod, a surplus member or a group that could stay, or nothing.
func (k reckoning) sparable() string {
	rank, _ := k.fits()
	without := func(stay func(i int, v Victim) bool) bool {
		fewer := reckoning{k.p, slices.Clone(k.gone)}
		for i, v := range k.p.Victims {
			if stay(i, v) {
				fewer.gone[i] = false
			}
		}
		other, fits := fewer.fits()
		return fits && other <= rank && fewer.illegal() == ""
	}
	for i, v := range k.p.Victims {
		if !k.gone[i] {
			continue
		}
		if without(func(j int, _ Victim) bool { return j == i }) {
			return string(v.UID)
		}
		surplus := k.surplus(v.Group)
		if _, known := k.p.Groups[v.Group]; known && without(func(j int, o Victim) bool { return o.Group == v.Group && !slices.Contains(surplus, j) }) {
			return v.Group.String()
		}
	}
	return ""
}

// compareReckoned compares costs: fewer pods of the highest priority, then of the next.
func compareReckoned(a, b map[int32]int) int {
	for priority := int32(20); priority >= 0; priority-- {
		if c := cmp.Compare(a[priority], b[priority]); c != 0 {
			return c
		}
	}
	return 0
}

// bruteForce returns the cheapest legal set of victims that lets the gang start, trying every one, in the best rank.
func bruteForce(p *EvictProblem) (best []bool) {
	k := reckoning{p, make([]bool, len(p.Victims))}
	bestRank := 0
	var surplus []int
	for id := range p.Groups {
		surplus = append(surplus, k.surplus(id)...)
	}
	for set := range 1 << len(p.Victims) {
		lost := map[ID]int{}
		for i := range k.gone {
			if k.gone[i] = set&(1<<i) != 0; k.gone[i] {
				lost[p.Victims[i].Group]++
			}
		}
		legal := k.illegal() == ""
		for i, v := range p.Victims {
			g, known := p.Groups[v.Group]
			if k.gone[i] && known && lost[v.Group] < g.Bound && !slices.Contains(surplus, i) {
				legal = false
			}
		}
		if !legal {
			continue
		}
		if rank, ok := k.fits(); ok {
			if none := set == 0; none {
				return slices.Clone(k.gone)
			}
			if best == nil || rank < bestRank || rank == bestRank && compareReckoned(k.cost(), reckoning{p, best}.cost()) < 0 {
				best, bestRank = slices.Clone(k.gone), rank
			}
		}
	}
	return best
}
