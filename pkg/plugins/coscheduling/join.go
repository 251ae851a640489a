package coscheduling

import (
	"context"

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
	nodes, shares, err := c.planner.JoinDomain(j.id, levels, j.pod, nodes)
	switch {
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case len(nodes) == 0:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, shares)
	}
	names := c.planner.Join(j.ctx, j.id, levels, j.pod, nodes)
	switch {
	case names == nil && shares == "":
		return c.open()
	case names == nil:
		names = sets.New[string]()
		for _, n := range nodes {
			names.Insert(n.Node().Name)
		}
	}
	result, status := confine(j.state, names)
	if shares != "" {
		j.state.Write(nodesKey, nodeSet{Set: names, why: shares})
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
