package dryrun

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/ranks"
	"berth.dev/berth/pkg/topology"
)

// segmentChoice chooses domains for segments.
type segmentChoice struct {
	segments *segments
	nodes    []fwk.NodeInfo
	need     int
	required int
	// classes numbers the classes of members; those that ask for the same by the account are one.
	classes map[string]int
	domains []segmentDomain
	runs    []ranks.Segment
}

// segmentDomain is a domain of the level of segments.
type segmentDomain struct {
	nodes []int
	// slots bounds how many members of each class the domain takes.
	slots []int
	node  topology.Node
}

func (p *Planner) newSegmentChoice(s *segments, turn gang.Turn, nodes []fwk.NodeInfo,
	only *modelLimits) *segmentChoice {
	c := &segmentChoice{segments: s, nodes: nodes, need: turn.Need.Total, required: len(s.levels.Required),
		classes: map[string]int{}}
	index, at := map[string]int{}, map[string]int{}
	for i, n := range nodes {
		name := domainOf(s.levels, n.Node())
		if name == "" {
			continue
		}
		if _, known := index[name]; !known {
			index[name] = len(c.domains)
			c.domains = append(c.domains, segmentDomain{})
		}
		d := index[name]
		at[n.Node().Name] = d
		c.domains[d].nodes = append(c.domains[d].nodes, i)
	}
	shapes := map[capacity.ShapeKey]int{}
	for i := range turn.Members {
		m := &turn.Members[i]
		pod := p.Pod(m.Ref)
		if _, known := c.classes[m.Class]; known || pod == nil {
			continue
		}
		key := p.Capacity.Acquire(pod)
		class, known := shapes[key]
		if !known {
			class = len(shapes)
			shapes[key] = class
			for d := range c.domains {
				c.domains[d].slots = append(c.domains[d].slots, 0)
			}
			p.Capacity.Each(key, func(node *v1.Node, now, _ int) {
				if d, here := at[node.Name]; here && only.allow(m.Class, node) {
					c.domains[d].slots[class] += now
				}
			})
		}
		p.Capacity.Release(key)
		c.classes[m.Class] = class
	}
	for i, members := range s.members {
		run := ranks.Segment{Want: make([]int, len(shapes)), Domain: ranks.None}
		for _, m := range members {
			if class, known := c.classes[m.Class]; known {
				run.Want[class]++
			}
		}
		run.Coming = max(s.levels.Segment.Size-len(members)-s.placed[i], 0)
		if d, known := index[s.held[i]]; known {
			run.Domain = d
		}
		c.runs = append(c.runs, run)
	}
	return c
}

// paths tells which wider domains the domains of segments are in, by those of their nodes: a level counts if no domain
// is divided by it.
func (c *segmentChoice) paths(paths [][]string, held map[string]int) {
	var levels []int
	if len(paths) > 0 {
		for level := range paths[0] {
			divides := func(d segmentDomain) bool {
				return slices.ContainsFunc(d.nodes, func(i int) bool { return paths[i][level] != paths[d.nodes[0]][level] })
			}
			if level < c.required || !slices.ContainsFunc(c.domains, divides) {
				levels = append(levels, level)
			}
		}
	}
	for i := range c.domains {
		d := &c.domains[i]
		for _, level := range levels {
			d.node.Path = append(d.node.Path, paths[d.nodes[0]][level])
		}
		d.node.Path = append(d.node.Path, fmt.Sprint(i))
		for _, n := range d.nodes {
			d.node.Held += held[c.nodes[n].Node().Name]
		}
	}
}

// order returns the domains in the order in which to fill them: as few of the wider ones as possible.
func (c *segmentChoice) order() []int {
	left := make([][]int, len(c.domains))
	for i := range left {
		left[i] = slices.Clone(c.domains[i].slots)
	}
	kinds, demand, placed := [][]int{}, topology.Demand{}, 0
	for _, run := range c.runs {
		whole := run.Whole()
		if run.Domain != ranks.None {
			for class, n := range whole {
				n = min(n, left[run.Domain][class])
				left[run.Domain][class] -= n
				placed += n
			}
			continue
		}
		kind := slices.IndexFunc(kinds, func(want []int) bool { return slices.Equal(want, whole) })
		if kind < 0 {
			kind = len(kinds)
			kinds, demand.Want = append(kinds, whole), append(demand.Want, 0)
		}
		demand.Want[kind]++
	}
	var order []int
	if len(kinds) > 0 {
		tree := make([]topology.Node, len(c.domains))
		for i := range c.domains {
			tree[i] = c.domains[i].node
			for _, kind := range kinds {
				tree[i].Slots = append(tree[i].Slots, ranks.Times(kind, left[i]))
			}
		}
		demand.Need = max(c.need-placed+c.segments.levels.Segment.Size-1, 0) / c.segments.levels.Segment.Size
		if arrangements := topology.Arrange(tree, c.required, demand); len(arrangements) > 0 {
			order = slices.Concat(arrangements[0].Sets...)
		}
		// The others are for segments that fit nowhere whole.
		order = append(order, c.others(order)...)
	}
	return order
}

// others returns the domains that are not in the order and share the required levels with those that are.
func (c *segmentChoice) others(order []int) []int {
	var out []int
	for d := range c.domains {
		if len(order) > 0 && !slices.Contains(order, d) &&
			slices.Equal(c.domains[d].node.Path[:c.required], c.domains[order[0]].node.Path[:c.required]) {
			out = append(out, d)
		}
	}
	return out
}

// part returns the nodes of the domains that segments get, and their members, those of one domain together.
func (c *segmentChoice) part() (Part, []gang.Member) {
	order := c.order()
	for _, run := range c.runs {
		if run.Domain != ranks.None && !slices.Contains(order, run.Domain) {
			order = append(order, run.Domain)
		}
	}
	slots, place := make([][]int, len(order)), map[int]int{}
	for i, d := range order {
		slots[i], place[d] = c.domains[d].slots, i
	}
	runs := slices.Clone(c.runs)
	for i := range runs {
		if runs[i].Domain != ranks.None {
			runs[i].Domain = place[runs[i].Domain]
		}
	}
	part := Part{homes: &homes{of: map[gang.UID]int{}}}
	var members []gang.Member
	used := map[int]bool{}
	for i, at := range ranks.Fill(slots, runs, c.need) {
		if at == ranks.None {
			continue
		}
		used[order[at]] = true
		for _, m := range c.segments.members[i] {
			part.homes.of[m.UID] = order[at]
			members = append(members, m)
		}
	}
	for i, d := range order {
		if used[d] {
			place[d] = i
			for _, n := range c.domains[d].nodes {
				part.Nodes, part.homes.at = append(part.Nodes, c.nodes[n]), append(part.homes.at, d)
			}
		}
	}
	slices.SortStableFunc(members, func(a, b gang.Member) int {
		return cmp.Compare(place[part.homes.of[a.UID]], place[part.homes.of[b.UID]])
	})
	return part, members
}

// learn notes how many members a domain takes where not all of those that it was to take fit, and reports whether there
// was anything to learn.
func (c *segmentChoice) learn(a *Plan, members []gang.Member) bool {
	type key struct{ domain, class int }
	wanted, fits := map[key]int{}, map[key]int{}
	placed := map[gang.UID]bool{}
	for _, as := range a.Assignments {
		placed[as.UID] = true
	}
	for _, m := range members {
		k := key{a.homes.of[m.UID], c.classes[m.Class]}
		wanted[k]++
		if placed[m.UID] {
			fits[k]++
		}
	}
	news := false
	for k, n := range wanted {
		if fits[k] < n {
			c.domains[k.domain].slots[k.class], news = fits[k], true
		}
	}
	return news
}
