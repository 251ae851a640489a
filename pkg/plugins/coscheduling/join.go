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

// joining is the cycle of a member whose gang has started.
type joining struct {
	c     *coordinator
	ctx   context.Context
	state fwk.CycleState
	id    gang.ID
	pod   *v1.Pod
}

// join lets a member of a gang that has started go anywhere, or into the domain of the others if they have to share
// one, and where it fits there near those beside its rank.
func (j joining) join(nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c := j.c
	levels, err := c.planner.Topology(j.id, j.pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	nodes, shares, err := c.planner.Sets().Join(j.id, levels, j.pod, nodes)
	switch {
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case len(nodes) == 0:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, shares)
	case shares != "":
		return j.within(levels, nodes, shares)
	}
	held := c.ledger.Nodes(j.id)
	if len(held) == 0 {
		return c.open()
	}
	if len(levels.Required) == 0 {
		if names := c.planner.Join(j.ctx, j.id, levels, j.pod, nodes); names != nil {
			return confine(j.state, names)
		}
		return c.open()
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
		return c.open()
	}
	var within []fwk.NodeInfo
	for _, n := range nodes {
		if domain(n.Node()) == most {
			within = append(within, n)
		}
	}
	return j.within(levels, within, tiedTo(levels.Required, within[0].Node()))
}

// within lets a member of a gang that has started go to some nodes, where it fits near those beside its rank.
func (j joining) within(levels gangview.Topology, nodes []fwk.NodeInfo,
	why string) (*fwk.PreFilterResult, *fwk.Status) {
	names := j.c.planner.Join(j.ctx, j.id, levels, j.pod, nodes)
	if names == nil {
		names = sets.New[string]()
		for _, n := range nodes {
			names.Insert(n.Node().Name)
		}
	}
	result, status := confine(j.state, names)
	j.state.Write(nodesKey, nodeSet{Set: names, why: why})
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

// wakeGroup has the members tried again whose group, within a gang that has started, may have waited for the pod.
func (c *coordinator) wakeGroup(ctx context.Context, pod *v1.Pod) {
	id := c.members.ID(pod)
	pg, v := c.members.Group(id), gang.View{}
	if pg != nil {
		v, _ = c.ledger.View(id)
	}
	if !v.Started || v.Minimum.Tree == nil {
		return
	}
	around := v.Minimum.Tree.Around(gangview.GroupOf(pod, pg))
	var waiting []gang.Ref
	for _, ref := range c.ledger.Members(id) {
		other := c.members.Pod(ref)
		if other == nil || other.UID == pod.UID || around == nil || !c.ledger.Cycles.Standing(ref.UID).Alone {
			continue
		}
		if name := gangview.GroupOf(other, pg); name == around.Name || around.Holds(name) {
			waiting = append(waiting, ref)
		}
	}
	c.effects.Activate(ctx, waiting)
}
