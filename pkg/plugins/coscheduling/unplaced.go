package coscheduling

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
)

// PostFilter stops the preemption of pods one at a time for a gang: victims that make room for one member are lost if
// the others still do not fit. A member whose assignment does not hold any more leads the planning of the rest. For
// single pods it evicts gangs as a whole or not at all.
func (p *Plugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if state.IsPodGroupSchedulingCycle() || p.shared.members.Policy.LeftToCore(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	c, u := p.shared, unplaced{p: p, ctx: ctx, state: state, pod: pod}
	uid := gang.UID(pod.UID)
	of, err := c.members.Of(pod)
	id := of.ID
	if err == nil && id == (gang.ID{}) {
		return u.preemptAlone(statuses)
	}
	if err != nil || marked(state, passedKey) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	switch cycle := c.ledger.Cycles.Of(uid); cycle.Purpose {
	case gang.Alone:
		result, status := u.preemptAlone(statuses)
		return result, explained(state, status)
	case gang.Follow:
		plansInvalidated.Inc()
		why := obstacle.Obstacle{Cause: obstacle.NodeRefused, Group: id, Node: cycle.Node,
			Detail: statuses.Get(cycle.Node).Message()}
		c.effects.Apply(ctx, c.ledger.Cycles.Broken(uid, why, c.settings.backoff, time.Now()))
	case gang.Lead:
		if !c.ledger.Cycles.Standing(uid).Blocked {
			// Another plugin turned the leader away before it could plan: from all nodes, whatever their names.
			why := obstacle.Obstacle{Cause: obstacle.Declined, Group: id, Pod: pod.Name, Detail: statuses.Get("").Message()}
			c.effects.Apply(ctx, c.ledger.Cycles.Decline(uid, why, c.settings.backoff, time.Now()))
			return nil, u.stop("")
		}
		outcome, err := p.evictor.ForGang(ctx, id, cycle.Demand)
		if err != nil {
			return nil, fwk.AsStatus(fmt.Errorf("choosing pods to evict for gang %s: %w", id, err))
		}
		return nil, u.stop(outcome)
	}
	return nil, u.stop("")
}

// explained adds to why a pod cannot be scheduled what is to be said of the nodes to which it was sent.
func explained(state fwk.CycleState, status *fwk.Status) *fwk.Status {
	data, err := state.Read(nodesKey)
	if err != nil || data.(nodeSet).why == "" || !status.IsRejected() {
		return status
	}
	words := data.(nodeSet).why
	if said := status.Message(); said != "" {
		words = said + "; " + words
	}
	return fwk.NewStatus(status.Code(), words)
}

// unplaced is the cycle of a pod that found no node.
type unplaced struct {
	p     *Plugin
	ctx   context.Context
	state fwk.CycleState
	pod   *v1.Pod
}

// preemptAlone evicts pods for a single pod, or gives back what is allocated to it for nothing if that does not help.
func (u unplaced) preemptAlone(statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	result, status := u.p.evictor.ForPod(u.ctx, u.state, u.pod, statuses)
	if status.Code() == fwk.UnschedulableAndUnresolvable {
		u.p.giveBack(u.ctx, u.state, u.pod)
	}
	return result, status
}

// stop ends the search for pods to evict. The other plugins are not asked: the scheduler's own preemption takes no
// victims for a member of a gang, and would look at all nodes to find that out.
func (u unplaced) stop(message string) *fwk.Status {
	u.p.giveBack(u.ctx, u.state, u.pod)
	if message == "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, message)
}

// giveBack lets the plugin of claims give back devices that are allocated to the pod for nothing.
func (p *Plugin) giveBack(ctx context.Context, state fwk.CycleState, pod *v1.Pod) {
	if !p.shared.profiles.Traits(pod).Claims(pod) {
		return
	}
	for _, plugin := range p.framework.PreEnqueuePlugins() {
		if claims, ok := plugin.(*dynamicresources.DynamicResources); ok {
			// It writes to the API server, for which no cycle is to wait.
			go func(ctx context.Context) {
				_, status := claims.PostFilter(ctx, state, pod, nil)
				klog.FromContext(ctx).V(4).Info("Looked for devices that are allocated without a result", "pod", klog.KObj(pod),
					"outcome", status.Message())
			}(context.WithoutCancel(ctx))
		}
	}
}
