package placementpolicy

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// EventsToRegister names what can make a rejected pod schedulable: a pod that gives licenses back, a node in other node
// sets than before, and a change of the pod itself. Policies are not among them: an event of a CRD that is not
// installed would keep the scheduler from starting. A change of policies wakes the pods that it concerns.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// Annotations have no action type of their own: their changes arrive as the general update.
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Update | fwk.Delete},
			QueueingHintFn: p.afterPodChange},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel},
			QueueingHintFn: p.afterNodeChange},
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: p.afterOwnChange},
	}, nil
}

// afterPodChange queues a pod that uses licenses when another gives some back. It updates the ledger, whose own handler
// may be called later: else the pod could be tried too early and not again.
func (p *Plugin) afterPodChange(_ klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	v := p.policies.current()
	if before == nil || !p.policies.demand(v, pod).UsesLicenses() {
		return fwk.QueueSkip, nil
	}
	held := p.policies.demand(v, before)
	if !held.UsesLicenses() || after != nil && p.policies.demand(v, after).Key() == held.Key() {
		return fwk.QueueSkip, nil
	}
	p.policies.recount(before)
	return fwk.Queue, nil
}

// afterNodeChange queues a pod when a node may take it that could not before, or has changed pools.
func (p *Plugin) afterNodeChange(_ klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	v := p.policies.current()
	d, marks := p.policies.demand(v, pod), p.policies.marksOf(v, after)
	if before != nil {
		if v.set.MarksOf(before) == marks {
			return fwk.QueueSkip, nil
		}
		if d.UsesLicenses() {
			p.policies.nodeSeen(before, after) // as with pods
			return fwk.Queue, nil
		}
	}
	if d.Refusal != "" || d.Forbids(marks) != "" {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// afterOwnChange queues a pod when other rules concern it than before.
func (p *Plugin) afterOwnChange(_ klog.Logger, _ *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if v := p.policies.current(); p.policies.demand(v, before).Key() == p.policies.demand(v, after).Key() {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
