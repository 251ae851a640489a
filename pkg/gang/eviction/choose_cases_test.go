package eviction

import (
	"fmt"

	"berth.dev/berth/pkg/gang"
)

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

// zeros is what nodes have free that have nothing free.
func zeros(nodes int) []int64 { return make([]int64, nodes) }

// with adds victims.
func (p *Problem) with(victims ...Victim) *Problem {
	p.Victims = append(p.Victims, victims...)
	return p
}

// gang adds a group of pods of a number of GPUs, one on each of the nodes.
func (p *Problem) gang(id gang.ID, minimum int, each int64, nodes ...int) *Problem {
	for i, n := range nodes {
		p.Victims = append(p.Victims, low(fmt.Sprintf("%s%d", id.Name, i), n, inGroup(id), gpus(each)))
	}
	p.Groups[id] = standing(minimum, len(nodes))
	return p
}

// allowing adds a budget that allows a number of evictions.
func (p *Problem) allowing(evictions int) *Problem {
	p.Budgets = append(p.Budgets, evictions)
	return p
}

// change changes the problem.
func (p *Problem) change(f func(p *Problem)) *Problem {
	f(p)
	return p
}

// upTo returns the numbers from first to last.
func upTo(first, last int) []int {
	var out []int
	for i := first; i <= last; i++ {
		out = append(out, i)
	}
	return out
}

// filled adds a number of pods of one GPU to the node.
func (p *Problem) filled(node, pods int, options ...option) *Problem {
	for i := range pods {
		p.Victims = append(p.Victims, low(fmt.Sprintf("n%d-%d", node, i), node, options...))
	}
	return p
}

// scatter adds groups of a size, with pods of one GPU that fill the nodes, so that no two groups share many nodes.
func (p *Problem) scatter(groups, size, nodes int) *Problem {
	for g := range groups {
		id := gang.ID{Namespace: "ns", Name: fmt.Sprint("g", g)}
		var on []int
		for i := range size {
			on = append(on, (g+i*(2*(g/nodes)+1)*5)%nodes)
		}
		p.gang(id, size, 1, on...)
	}
	return p
}

// singles returns the names of the pods with which filled fills nodes, sorted.
func singles(nodes, first, pods int) []gang.UID {
	var out []gang.UID
	for n := range nodes {
		for i := range pods {
			out = append(out, gang.UID(fmt.Sprintf("n%d-%d", first+n, i)))
		}
	}
	return out
}
