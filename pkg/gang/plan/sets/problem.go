package sets

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/tree"
	"berth.dev/berth/pkg/podview"
)

// mostAccounts bounds the classes with slots by node. Other classes are bounded by what nodes have free.
const mostAccounts = 32

// Problem asks in numbers which domain each set of members gets.
type Problem struct {
	*Division
	tree.Problem
	nodes []*v1.Node
	// classes numbers the classes of members; classes of one shape have one number.
	classes map[string]int
	levels  []domains
}

// domains is the domains by some node labels.
type domains struct {
	keys  []string
	index map[string]int
}

// Pose poses the problem of the sets on the nodes, with what these have free.
func (d *Divider) Pose(s *Division, members []gang.Member, nodes []fwk.NodeInfo) *Problem {
	classes, shapes := map[string]int{}, map[capacity.ShapeKey]int{}
	var keys []capacity.ShapeKey
	var wants []*framework.PodInfo
	for i := range members {
		m := &members[i]
		pod := d.Members.Pod(m.Ref)
		if _, known := classes[m.Class]; known || pod == nil {
			continue
		}
		key := d.Capacity.Acquire(pod)
		defer d.Capacity.Release(key) // as long as it is asked about
		class, known := shapes[key]
		if !known {
			class = len(keys)
			shapes[key], keys, wants = class, append(keys, key), append(wants, &framework.PodInfo{Pod: pod})
		}
		classes[m.Class] = class
	}
	objects, names := make([]*v1.Node, len(nodes)), make([]string, len(nodes))
	for i, n := range nodes {
		objects[i], names[i] = n.Node(), n.Node().Name
	}
	resources := namesOf(wants)
	asks := make([][]int64, len(wants))
	for class, of := range wants {
		for _, name := range resources {
			asks[class] = append(asks[class], podview.UsedBy(of, name))
		}
	}
	c := newProblem(s, classes, asks, objects)
	for i, n := range nodes {
		for _, name := range resources {
			c.Nodes[i].Free = append(c.Nodes[i].Free, freeOf(n, name))
		}
	}
	for _, key := range keys[:min(len(keys), mostAccounts)] {
		for i, slots := range d.Capacity.SlotsOn(key, names) {
			c.Nodes[i].Slots = append(c.Nodes[i].Slots, slots)
		}
	}
	return c
}

// namesOf returns the resources that any of the pods asks for, sorted.
func namesOf(pods []*framework.PodInfo) []v1.ResourceName {
	var names []v1.ResourceName
	for _, pod := range pods {
		all := slices.Collect(maps.Keys(pod.CalculateResource().Resource.GetScalarResources()))
		for _, name := range append(all, v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory) {
			if podview.UsedBy(pod, name) > 0 {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unknownAmount is what a node has of a resource that it does not report: the slots bound how many members fit.
const unknownAmount = 1 << 50

// freeOf is how much of the resource the node has free, less what assumed pods take, which the count of capacity does
// not include.
func freeOf(n fwk.NodeInfo, name v1.ResourceName) int64 {
	_, reported := n.GetAllocatable().GetScalarResources()[name]
	if !reported && name != v1.ResourcePods && name != v1.ResourceCPU && name != v1.ResourceMemory {
		return unknownAmount
	}
	return podview.Free(n, name)
}

// Outline poses the problem of members of a gang without what nodes have free, which the caller adds. classes numbers
// the classes of members; classes that ask for the same have one number.
func (d *Divider) Outline(id gang.ID, levels read.Topology, need gang.Minimum, members []gang.Member,
	classes map[string]int, nodes []*v1.Node) (*Problem, error) {
	s, err := d.Divide(id, levels, need, members)
	if err != nil {
		return nil, err
	}
	count := 0
	for _, class := range classes {
		count = max(count, class+1)
	}
	return newProblem(s, classes, make([][]int64, count), nodes), nil
}

func newProblem(s *Division, classes map[string]int, asks [][]int64, nodes []*v1.Node) *Problem {
	c := &Problem{Division: s, nodes: nodes, classes: classes}
	c.Asks, c.Nodes = asks, make([]tree.Node, len(nodes))
	for i := range s.all {
		c.addSet(i)
	}
	return c
}

// addSet adds the i-th set.
func (c *Problem) addSet(i int) {
	set := &c.all[i]
	out := tree.Set{Level: tree.None, Held: tree.None, Need: make([]int, len(c.Asks)), More: make([]int, len(c.Asks)),
		Enough: set.enough, Alone: set.alone()}
	for _, keys := range set.prefer {
		out.Prefer = append(out.Prefer, c.levelOf(keys))
	}
	if set.own {
		out.Level = c.levelOf(set.keys)
		if set.held != "" {
			d, here := c.levels[out.Level].index[set.held]
			if out.Held = d; !here {
				// None of the nodes is in that domain, and the set has no place elsewhere.
				out.Held = len(c.levels[out.Level].index)
			}
		}
	}
	needed, total := set.needed()
	for j, m := range set.members {
		if class, known := c.classes[m.Class]; known && needed[j] {
			out.Need[class]++
		} else if known {
			out.More[class]++
		}
	}
	for _, within := range set.sets {
		if c.complete(within) {
			out.Sets = append(out.Sets, within)
		}
	}
	if out.Least = set.least(); !total {
		out.Least = len(out.Sets) + 1
	}
	c.Sets = append(c.Sets, out)
}

// needed says which of the members have to be placed, the oldest of each role, and whether they are enough.
func (s *part) needed() (needed []bool, enough bool) {
	needed, have := make([]bool, len(s.members)), map[string]int{}
	for i, m := range s.members {
		if s.lacks == nil || have[m.Role] < s.lacks.Roles[m.Role] {
			needed[i] = true
			have[m.Role]++
		}
	}
	if s.lacks == nil {
		return needed, true
	}
	for role, n := range s.lacks.Roles {
		if have[role] < n {
			return needed, false
		}
	}
	return needed, true
}

// complete reports whether a set has the members that it needs, and those within it that it needs have.
func (s *Division) complete(at int) bool {
	set := &s.all[at]
	whole := 0
	for _, within := range set.sets {
		if s.complete(within) {
			whole++
		}
	}
	_, enough := set.needed()
	return enough && whole >= set.least()
}

// levelOf is the index of the level of the domains by the keys.
func (c *Problem) levelOf(keys []string) int {
	if at := slices.IndexFunc(c.levels, func(l domains) bool { return slices.Equal(l.keys, keys) }); at >= 0 {
		return at
	}
	l := domains{keys: keys, index: map[string]int{}}
	of := make([]int, len(c.nodes))
	for i, n := range c.nodes {
		name := DomainOf(keys, n)
		if name == "" {
			of[i] = tree.None
			continue
		}
		if _, known := l.index[name]; !known {
			l.index[name] = len(l.index)
		}
		of[i] = l.index[name]
	}
	c.levels, c.Levels = append(c.levels, l), append(c.Levels, of)
	return len(c.levels) - 1
}

// Place is where the answer puts a member.
type Place struct {
	gang.Member
	Home  tree.Home
	Class int
	Node  int
}

// Places returns where the answer puts members, those that are needed first, set by set.
func (c *Problem) Places(answer *tree.Answer) []Place {
	var out []Place
	for i := range c.all {
		set := &c.all[i]
		needed, _ := set.needed()
		used := make([]int, len(c.Asks))
		for _, first := range []bool{true, false} {
			for j, m := range set.members {
				class, known := c.classes[m.Class]
				if !known || needed[j] != first || used[class] == len(answer.Nodes[i][class]) {
					continue
				}
				out = append(out, Place{m, answer.Homes[i], class, answer.Nodes[i][class][used[class]]})
				used[class]++
			}
		}
	}
	return out
}
