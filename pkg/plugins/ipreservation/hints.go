package ipreservation

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/wellknown"
)

// EventsToRegister names what can make a rejected pod schedulable: a node in another domain, and a change of the pod's
// annotation. Pools and reservations are not among them: an event of a CRD that is not installed would keep the
// scheduler from starting. Their changes wake the pods that ask for addresses.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		process.On(fwk.Node, fwk.Add|fwk.UpdateNodeLabel, p.afterNodeChange),
		process.On(fwk.TargetPod, process.OwnChange, afterOwnChange),
	}, nil
}

// afterNodeChange queues a pod when a node comes where it can have an address. Where none is free, the pod is woken
// when one comes free.
func (p *Plugin) afterNodeChange(pod *v1.Pod, before, after *v1.Node) bool {
	ask, bad := p.addresses.ask(pod)
	if bad != nil || ask == nil {
		// No node helps a pod with a bad value; one whose reservation is gone needs no address any more.
		return bad == nil
	}
	plan, refusal := p.addresses.ledger.Plan(ask)
	fits := func(node *v1.Node) bool {
		reason, _ := plan.Refuses(node.Labels)
		return reason == ""
	}
	return refusal == "" && fits(after) && (before == nil || !fits(before))
}

// afterOwnChange queues a pod when it asks for another pool.
func afterOwnChange(_, before, after *v1.Pod) bool {
	return before.Annotations[wellknown.IPPoolKey] != after.Annotations[wellknown.IPPoolKey]
}
