package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/gang/read"
)

// keptForRest is for how long room is kept for the others with which a group begins that comes later. Each of them has
// its cycle right after the first.
const keptForRest = 10 * time.Second

// join lets a member of a gang that has started go anywhere, or into the domain of the others if they have to share
// one, and where it fits there near those beside its rank.
func (c *coordinator) join(ctx context.Context, state fwk.CycleState, id gang.ID, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	joined, err := c.planner.Join(ctx, id, pod, nodes)
	switch {
	case err != nil:
		c.holds.Gate.Wait(pod) // until the PodGroup says something else
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case joined.Nodes == nil:
		return c.open()
	case len(joined.Nodes) == 0:
		// What frees the place that it lacks may concern other plugins alone.
		c.holds.Gate.Wait(pod)
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, joined.Why)
	}
	c.keepForRest(id, joined.Rest)
	result, status := confine(state, joined.Nodes)
	if joined.Why != "" {
		state.Write(nodesKey, nodeSet{Set: joined.Nodes, why: joined.Why})
	}
	return result, status
}

// keepForRest keeps the room that a plan has found for the other members of a group that begins, or others would take
// it in between and leave the group in part.
func (c *coordinator) keepForRest(id gang.ID, rest []plan.PlacedPod) {
	if len(rest) == 0 {
		return
	}
	pg, until := c.members.Group(id), time.Now().Add(keptForRest)
	v, _ := c.ledger.View(id)
	kept := make([]hold.Hold, len(rest))
	for i, p := range rest {
		pod := p.Info.GetPod()
		kept[i] = hold.Hold{To: id, Kind: hold.ForRest, Priority: v.Priority, Node: p.Node, Member: gang.UID(pod.UID),
			Role: read.Role(pod, pg), Info: p.Info, Until: until}
	}
	c.holds.Renew(id, kept)
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
