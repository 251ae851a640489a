package coscheduling

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
)

// join lets a member of a gang that has started go anywhere, or into the domain of the others if they have to share
// one, and where it fits there near those beside its rank.
func (c *coordinator) join(ctx context.Context, state fwk.CycleState, id gang.ID, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	names, shares, err := c.planner.Join(ctx, id, pod, nodes)
	switch {
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case names == nil:
		return c.open()
	case len(names) == 0:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, shares)
	}
	result, status := confine(state, names)
	if shares != "" {
		state.Write(nodesKey, nodeSet{Set: names, why: shares})
	}
	return result, status
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
	around := v.Minimum.Tree.Around(read.GroupOf(pod, pg))
	var waiting []gang.Ref
	for _, ref := range c.ledger.Members(id) {
		other := c.members.Pod(ref)
		if other == nil || other.UID == pod.UID || around == nil || !c.ledger.Cycles.Standing(ref.UID).Alone {
			continue
		}
		if name := read.GroupOf(other, pg); name == around.Name || around.Holds(name) {
			waiting = append(waiting, ref)
		}
	}
	c.effects.Activate(ctx, waiting)
}
