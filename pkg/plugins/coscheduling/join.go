package coscheduling

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
)

// join lets a member of a gang that has started go anywhere, or into the domain of the others if they have to share
// one, and where it fits there near those beside its rank.
func (p *Plugin) join(ctx context.Context, state fwk.CycleState, id gang.ID, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c := p.shared
	levels, err := c.planner.Topology(id, pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	nodes, shares, err := c.planner.Sets().Join(id, levels, pod, nodes)
	switch {
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case len(nodes) == 0:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, shares)
	case shares != "":
		return p.joinWithin(ctx, state, id, pod, levels, nodes, shares)
	}
	held := c.ledger.Nodes(id)
	if len(held) == 0 {
		return p.open()
	}
	if len(levels.Required) == 0 {
		if names := c.planner.Join(ctx, id, levels, pod, nodes); names != nil {
			return confine(state, names)
		}
		return p.open()
	}
	domain := func(n *v1.Node) string {
		path := ""
		for _, key := range levels.Required {
			path += n.Labels[key] + "\x00"
		}
		return path
	}
	count := map[string]int{}
	most := ""
	for _, n := range nodes {
		if here := held[n.Node().Name]; here > 0 {
			d := domain(n.Node())
			if count[d] += here; most == "" || count[d] > count[most] {
				most = d
			}
		}
	}
	if most == "" {
		return p.open()
	}
	var within []fwk.NodeInfo
	for _, n := range nodes {
		if domain(n.Node()) == most {
			within = append(within, n)
		}
	}
	return p.joinWithin(ctx, state, id, pod, levels, within, tiedTo(levels.Required, within[0].Node()))
}

// joinWithin lets a member of a gang that has started go to some nodes, where it fits near those beside its rank.
func (p *Plugin) joinWithin(
	ctx context.Context, state fwk.CycleState, id gang.ID, pod *v1.Pod, levels gangview.Topology,
	nodes []fwk.NodeInfo, why string,
) (*fwk.PreFilterResult, *fwk.Status) {
	names := p.shared.planner.Join(ctx, id, levels, pod, nodes)
	if names == nil {
		names = sets.New[string]()
		for _, n := range nodes {
			names.Insert(n.Node().Name)
		}
	}
	result, status := confine(state, names)
	state.Write(nodesKey, nodeSet{Set: names, why: why})
	return result, status
}

// tiedTo says where a pod has to be because the other members of its gang are there.
func tiedTo(keys []string, example *v1.Node) string {
	domains := make([]string, len(keys))
	for i, key := range keys {
		domains[i] = key + "=" + example.Labels[key]
	}
	return "the other members of the gang are on nodes with " + strings.Join(domains, ", ") +
		", and this one has to be there, too"
}
