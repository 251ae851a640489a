package eviction

import (
	"fmt"
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

// drawFunc returns a number between least and most, both included.
type drawFunc func(name string, least, most int) int

// problemSize bounds the problems that drawProblem draws.
type problemSize struct{ nodes, victims, groups, classes, members, budgets int }

// drawProblem draws a problem in which units are few and everything that the rules know occurs.
func drawProblem(d drawFunc, most problemSize) *Problem {
	p := &Problem{Priority: 10, Groups: map[gang.ID]Group{}}
	dims := d("resources", 1, 2)
	vector := func(name string, least, most int) Vector {
		v := make(Vector, dims)
		for r := range v {
			v[r] = int64(d(name, least, most))
		}
		return v
	}
	for i := range d("nodes", 1, most.nodes) {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprintf("n%d", i), Free: vector("free", -1, 4)})
	}
	roles := []string{"", "leader"}
	for range d("classes", 1, most.classes) {
		c := Class{Demand: vector("demand", 0, 4), Count: d("count", 0, most.members)}
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
	if d("domains", 0, 3) == 0 {
		p.Domains = [][]int{}
		for range d("pairs", 1, 2) {
			for range d("of a pair", 1, 2) {
				var domain []int
				for n := range p.Nodes {
					if d("within", 0, 1) == 1 {
						domain = append(domain, n)
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
			UID: gang.UID(fmt.Sprintf("v%d", i)), Node: d("node", 0, len(p.Nodes)-1), Priority: int32(d("priority", 7, 10)),
			Started: t0.Add(time.Duration(d("started", 0, 2)) * time.Minute), Requests: vector("requests", 0, 4),
		}
		if d("working", 0, 1) == 1 {
			v.Lost = int64(d("lost", 0, 4))
		}
		v.Protected = d("protected", 0, 9) == 0
		if d("elsewhere", 0, 20) == 0 {
			v.Node = -1
		}
		if g := d("group", 0, groups); g > 0 {
			v.Group = gang.ID{Namespace: "ns", Name: fmt.Sprintf("g%d", g)}
			v.Role = roles[d("its role", 0, 1)]
			group := p.Groups[v.Group]
			if d("together", 0, 4) == 0 {
				v.With = "x"
				group.Together = map[string]int{"x": group.Together["x"] + 1}
			}
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
		id := gang.ID{Namespace: "ns", Name: fmt.Sprintf("g%d", i+1)}
		g, known := p.Groups[id]
		if !known {
			continue
		}
		g.Minimum.Total = d("minimum", 0, 4)
		if d("by role", 0, 3) == 0 {
			g.Minimum.Roles = map[string]int{"leader": d("minimum of leaders", 0, 2)}
		}
		if d("tree", 0, 3) == 0 {
			// Roles "" are in no group within.
			g.Minimum.Tree = oneOf("leader", d("of the leaders", 1, 3), "other", d("of others", 0, 1))
			g.BoundByRole = map[string]int{"leader": g.SettledByRole["leader"], "": g.Settled - g.SettledByRole["leader"]}
		}
		g.Settled += max(d("succeeded", -3, 2), 0)
		g.Bound += max(d("immune", -5, 1), 0)
		g.AllOrNothing = d("whole", 0, 4) == 0
		if g.Together != nil && d("immune together", 0, 4) == 0 {
			g.Together["x"]++
			g.Bound++
		}
		p.Groups[id] = g
		if d("unknown", 0, 9) == 0 {
			delete(p.Groups, id)
		}
	}
	return p
}

// drawFull draws a problem in which pods of 2, 4 and 8 GPUs fill all nodes of 8, some of them in groups on several
// nodes.
func drawFull(d drawFunc, nodes, pods, groups int) *Problem {
	p := &Problem{Priority: 10, Groups: map[gang.ID]Group{}}
	p.Classes = []Class{{Demand: Vector{int64(4 * d("demand", 1, 2))}, Count: 4}}
	working := d("working", 0, 1) == 1
	for n := range nodes {
		node := Node{Name: fmt.Sprintf("n%d", n), Free: Vector{8}}
		for node.Free[0] > 0 && len(p.Victims) < pods {
			v := Victim{
				UID: gang.UID(fmt.Sprintf("v%d", len(p.Victims))), Node: n, Priority: int32(d("priority", 7, 9)), Started: t0,
				Requests: Vector{min(node.Free[0], 2<<d("size", 0, 2))},
			}
			if working {
				v.Lost = v.Requests[0] * int64(d("minutes", 0, 5))
			}
			if g := d("group", 0, groups); g > 0 {
				v.Group = gang.ID{Namespace: "ns", Name: fmt.Sprintf("g%d", g)}
				group := p.Groups[v.Group]
				group.Settled++
				group.Bound++
				group.Minimum.Total = max(group.Settled-d("surplus", 0, 1), 1)
				p.Groups[v.Group] = group
			}
			node.Free[0] -= v.Requests[0]
			p.Victims = append(p.Victims, v)
		}
		node.Free[0] = 0
		p.Nodes = append(p.Nodes, node)
	}
	p.Need.Total = d("total", 1, 4)
	return p
}

// drawTree has the gang of a problem be divided into sets with racks, some of them groups of groups in a zone.
func drawTree(d drawFunc, p *Problem) {
	p.Need, p.Domains = gang.Minimum{}, nil
	racks, zones := make([]int, len(p.Nodes)), make([]int, len(p.Nodes))
	for n := range racks {
		racks[n] = d("rack", 0, 3)
		zones[n] = racks[n] / 2
	}
	p.Tree = &tree.Problem{Levels: [][]int{zones, racks}}
	add := func(around, level int) int {
		set := tree.Set{Level: level, Held: tree.None, Need: make([]int, len(p.Classes)), More: make([]int, len(p.Classes)),
			Enough: tree.None}
		p.Tree.Sets = append(p.Tree.Sets, set)
		at := len(p.Tree.Sets) - 1
		if around >= 0 {
			p.Tree.Sets[around].Sets = append(p.Tree.Sets[around].Sets, at)
		}
		return at
	}
	leaf := func(around int) {
		at := add(around, d("level", 0, 1))
		set := &p.Tree.Sets[at]
		set.Alone = d("alone", 0, 4) == 0
		for c := range p.Classes {
			set.Need[c] = d("needs", 0, 2)
			p.Classes[c].Count += set.Need[c]
		}
	}
	root := add(-1, tree.None)
	for range d("sets", 1, 2) {
		leaf(root)
	}
	if d("nested", 0, 2) == 0 {
		inner := add(root, 0)
		leaf(inner)
		leaf(inner)
		p.Tree.Sets[inner].Least = d("least within", 1, 2)
	}
	p.Tree.Sets[root].Least = len(p.Tree.Sets[root].Sets) - d("spare sets", 0, 1)*min(1, len(p.Tree.Sets[root].Sets)-1)
}
