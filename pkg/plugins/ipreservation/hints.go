package ipreservation

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/wellknown"
)

// EventsToRegister names what can make a rejected pod schedulable: a node in another domain, and a change of the pod's
// annotation. Pools and reservations are not among them: an event of a CRD that is not installed would keep the
// scheduler from starting. Their changes wake the pods that ask for addresses.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel},
			QueueingHintFn: p.afterNodeChange},
		// Annotations have no action type of their own: their changes arrive as the general update.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: afterOwnChange},
	}, nil
}

// afterNodeChange queues a pod when a node comes where it can have an address. Where none is free, the pod is woken
// when one comes free.
func (p *Plugin) afterNodeChange(_ klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	ask, bad := p.addresses.ask(pod)
	switch {
	case bad != nil:
		//nolint:nilerr // a value that cannot be read is no failure of the hint: no node helps such a pod
		return fwk.QueueSkip, nil
	case ask == nil:
		return fwk.Queue, nil // its reservation is gone, and it needs no address any more
	}
	plan, refusal := p.addresses.ledger.Plan(ask)
	fits := func(node *v1.Node) bool {
		reason, _ := plan.Refuses(node.Labels)
		return reason == ""
	}
	if refusal != "" || !fits(after) || before != nil && fits(before) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// afterOwnChange queues a pod when it asks for another pool.
func afterOwnChange(_ klog.Logger, _ *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if before.Annotations[wellknown.IPPoolKey] == after.Annotations[wellknown.IPPoolKey] {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
