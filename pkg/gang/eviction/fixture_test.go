package eviction

import (
	"fmt"
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

var (
	theGang   = gang.ID{Namespace: "ns", Name: "gang"}
	otherGang = gang.ID{Namespace: "ns", Name: "other"}
)

// option changes a victim.
type option func(*Victim)

// low returns a pod of priority 1 that has a GPU and, unless an option says otherwise, no group.
func low(name string, node int, options ...option) Victim {
	v := Victim{UID: gang.UID(name), Node: node, Priority: 1, Started: t0, Requests: Vector{1}}
	for _, o := range options {
		o(&v)
	}
	return v
}

func inGroup(id gang.ID) option       { return func(v *Victim) { v.Group = id } }
func as(role string) option           { return func(v *Victim) { v.Role = role } }
func gpus(n int64) option             { return func(v *Victim) { v.Requests = Vector{n} } }
func requests(r ...int64) option      { return func(v *Victim) { v.Requests = r } }
func ofPriority(p int32) option       { return func(v *Victim) { v.Priority = p } }
func age(d time.Duration) option      { return func(v *Victim) { v.Started = t0.Add(-d) } }
func losing(work int64) option        { return func(v *Victim) { v.Lost = work } }
func protected(v *Victim)             { v.Protected = true }
func coveredBy(budgets ...int) option { return func(v *Victim) { v.Budgets = budgets } }

// standing returns a group of bound members that are all there is of it.
func standing(minimum, bound int) Group {
	return Group{Minimum: gang.Minimum{Total: minimum}, Settled: bound, Bound: bound}
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
