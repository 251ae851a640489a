package preempt

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/eviction"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/gang/plan/sets"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/tree"
)

// division is how the members of a gang are divided into groups or segments, each with a domain of its own.
type division struct {
	*sets.Problem
	// nodes holds the position of each node in the levels.
	nodes map[string]int
}

// divide makes the request ask for a domain for each group or segment of the gang.
func (r *request) divide(p *plan.Planner, levels read.Topology, members []gang.Member, nodes []*v1.Node) error {
	numbers, alike := map[string]int{}, map[capacity.ShapeKey]int{}
	var classes []requestClass
	for _, c := range r.classes {
		shape := p.Capacity.ShapeOf(c.pod)
		n, known := alike[shape]
		if !known {
			n = len(classes)
			alike[shape], classes = n, append(classes, requestClass{class: c.class, pod: c.pod})
		}
		numbers[c.class] = n
		classes[n].count += c.count
	}
	posed, err := p.Outline(r.id, levels, r.need, members, numbers, nodes)
	if err != nil {
		return err //nolint:wrapcheck // it says which pod
	}
	d := &division{posed, make(map[string]int, len(nodes))}
	for i, n := range nodes {
		d.nodes[n.Name] = i
	}
	r.division, r.classes, r.required, r.occupied = d, classes, nil, nil
	return nil
}

// objectsOf returns the API objects of nodes.
func objectsOf(nodes []fwk.NodeInfo) []*v1.Node {
	out := make([]*v1.Node, len(nodes))
	for i, n := range nodes {
		out[i] = n.Node()
	}
	return out
}

// asks reports whether both divisions have the same sets.
func (d *division) asks(other *division) bool {
	if d == nil || other == nil {
		return d == other
	}
	return slices.EqualFunc(d.Sets, other.Sets, func(a, b tree.Set) bool {
		return a.Level == b.Level && a.Least == b.Least && slices.Equal(a.Need, b.Need) && slices.Equal(a.Sets, b.Sets)
	})
}

// addTo adds the sets to the problem.
func (d *division) addTo(p *eviction.Problem) {
	if d == nil {
		return
	}
	p.Tree = &tree.Problem{Sets: d.Sets}
	for _, domains := range d.Levels {
		level := make([]int, len(p.Nodes))
		for n := range p.Nodes {
			level[n] = tree.None
			if at, known := d.nodes[p.Nodes[n].Name]; known {
				level[n] = domains[at]
			}
		}
		p.Tree.Levels = append(p.Tree.Levels, level)
	}
}

// addDomains adds the sets of nodes that share the required levels: only the one with most of the gang's members, if it
// has any.
func (b *problemBuilder) addDomains() {
	r, p := b.request, &b.problem
	if len(r.required) == 0 {
		return
	}
	in := b.evictor.Capacity.Cluster.Domain(r.occupied, r.required)
	index := map[string]int{}
	p.Domains = [][]int{}
	for n := range b.cluster.Nodes {
		domain := sets.DomainOf(r.required, b.cluster.Nodes[n].Object)
		if domain == "" || len(in) > 0 && domain != strings.Join(in, "\x00") {
			continue
		}
		d, known := index[domain]
		if !known {
			d = len(p.Domains)
			index[domain], p.Domains = d, append(p.Domains, nil)
		}
		p.Domains[d] = append(p.Domains[d], n)
	}
}

// bySet returns the members of each group or segment with the nodes to which the proposal keeps them, and adds their
// classes to classOf. There are no members if a node is gone.
func (c *checking) bySet(classOf map[gang.UID]string) (plan.Part, []gang.Member, error) {
	d := c.request.division
	places := d.Places(c.found.Sets)
	for i := range places {
		at, known := d.nodes[c.found.names[places[i].Node]]
		if !known {
			return plan.Part{}, nil, nil
		}
		places[i].Node = at
		classOf[places[i].UID] = c.request.classes[places[i].Class].class
	}
	nodes, err := c.profile.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return plan.Part{}, nil, fmt.Errorf("listing nodes: %w", err)
	}
	part, members := plan.OnNodes(places, nodes)
	return part, members, nil
}
