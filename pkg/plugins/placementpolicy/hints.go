package placementpolicy

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/process"
)

// EventsToRegister names what can make a rejected pod schedulable: a pod that gives licenses back, a node in other node
// sets than before, and a change of the pod itself. Policies are not among them: an event of a CRD that is not
// installed would keep the scheduler from starting. A change of policies wakes the pods that it concerns.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		process.On(fwk.AssignedPod, fwk.Update|fwk.Delete, p.afterPodChange), // of annotations, too
		process.On(fwk.Node, fwk.Add|fwk.UpdateNodeLabel, p.afterNodeChange),
		process.On(fwk.TargetPod, process.OwnChange, p.afterOwnChange),
	}, nil
}

// afterPodChange queues a pod that uses licenses when another gives some back. It updates the ledger, whose own handler
// may be called later: else the pod could be tried too early and not again.
func (p *Plugin) afterPodChange(pod, before, after *v1.Pod) bool {
	v := p.policies.current()
	if before == nil || !p.policies.demand(v, pod).UsesLicenses() {
		return false
	}
	held := p.policies.demand(v, before)
	if !held.UsesLicenses() || after != nil && p.policies.demand(v, after).Key() == held.Key() {
		return false
	}
	p.policies.recount(before)
	return true
}

// afterNodeChange queues a pod when a node may take it that could not before, or has changed pools.
func (p *Plugin) afterNodeChange(pod *v1.Pod, before, after *v1.Node) bool {
	v := p.policies.current()
	d, marks := p.policies.demand(v, pod), p.policies.marksOf(v, after)
	if before != nil {
		if v.set.MarksOf(before) == marks {
			return false
		}
		if d.UsesLicenses() {
			p.policies.nodeSeen(before, after) // as with pods
			return true
		}
	}
	return d.Refusal == "" && d.Forbids(marks) == ""
}

// afterOwnChange queues a pod when other rules concern it than before.
func (p *Plugin) afterOwnChange(_, before, after *v1.Pod) bool {
	v := p.policies.current()
	return p.policies.demand(v, before).Key() != p.policies.demand(v, after).Key()
}
