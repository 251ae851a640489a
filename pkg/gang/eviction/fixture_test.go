package eviction

import (
	"fmt"
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// low returns a pod of priority 1 that has 8 GPUs and no group.
func low(name string, node int) Victim {
	return Victim{UID: gang.UID(name), Node: node, Priority: 1, Started: t0, Requests: Vector{8}}
}

// oneOf is a tree that needs one of several groups. Each needs a number of members.
func oneOf(groups ...any) *tree.Group {
	of := &tree.Group{Least: 1}
	for i := 0; i < len(groups); i += 2 {
		name, least := groups[i].(string), groups[i+1].(int)
		of.Groups = append(of.Groups, tree.Group{Name: name, Roles: map[string]int{name: least}})
	}
	return of
}

// wants returns a problem of a gang of priority 100, of members that want a number of GPUs each, on nodes with free
// GPUs.
func wants(members int, each int64, free ...int64) *Problem {
	p := &Problem{
		Priority: 100,
		Need:     gang.Minimum{Total: members},
		Classes:  []Class{{Demand: Vector{each}, Count: members}},
		Groups:   map[gang.ID]Group{},
	}
	for i, f := range free {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprintf("n%d", i), Free: Vector{f}})
	}
	return p
}

// with adds victims.
func (p *Problem) with(victims ...Victim) *Problem {
	p.Victims = append(p.Victims, victims...)
	return p
}

// gang adds a group with a minimum, of pods of a number of GPUs, one on each of the nodes.
func (p *Problem) gang(minimum int, each int64, nodes ...int) *Problem {
	id := gang.ID{Namespace: "ns", Name: fmt.Sprint("g", len(p.Groups))}
	for i, n := range nodes {
		v := low(fmt.Sprintf("%s-%d", id.Name, i), n)
		v.Group, v.Requests = id, Vector{each}
		p.Victims = append(p.Victims, v)
	}
	p.Groups[id] = Group{Minimum: gang.Minimum{Total: minimum}, Settled: len(nodes), Bound: len(nodes)}
	return p
}

// change changes the problem.
func (p *Problem) change(f func(p *Problem)) *Problem {
	f(p)
	return p
}

// scatter adds groups of a size, with pods of one GPU that fill the nodes, so that no two groups share many nodes.
func (p *Problem) scatter(groups, size, nodes int) *Problem {
	for g := range groups {
		var on []int
		for i := range size {
			on = append(on, (g+i*(2*(g/nodes)+1)*5)%nodes)
		}
		p.gang(size, 1, on...)
	}
	return p
}
