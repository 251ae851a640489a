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
// installed would keep the scheduler from starting. The loop of the book wakes the pods that a change of policies
// concerns.
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

// afterPodChange queues a pod that uses licenses when another gives some back. The ledger hears of the change from here
// if its own handler has not heard yet: else the pod would be tried too early and not again.
func (p *Plugin) afterPodChange(logger klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	v := p.book.current()
	own, err := p.book.demand(v, pod)
	switch {
	case err != nil:
		return fwk.Queue, nil //nolint:nilerr // what it needs is not known
	case before == nil || !own.UsesLicenses():
		return fwk.QueueSkip, nil
	}
	if !p.book.placed(v, before).UsesLicenses() {
		logger.V(5).Info("Pod that changed used no licenses", "pod", klog.KObj(pod), "changedPod", klog.KObj(before))
		return fwk.QueueSkip, nil
	}
	if after == nil {
		// Also said of a pod whose binding failed; only the cache knows whether it is bound all the same.
		if known, err := p.book.pods.Pods(before.Namespace).Get(before.Name); err != nil || known.UID != before.UID ||
			known.Spec.NodeName == "" {
			p.book.release(before)
		}
		return fwk.Queue, nil
	}
	if p.book.placed(v, before).Key() == p.book.placed(v, after).Key() {
		return fwk.QueueSkip, nil
	}
	p.book.bind(after)
	return fwk.Queue, nil
}

// afterNodeChange queues a pod when a node may take it that could not before, or has changed pools.
func (p *Plugin) afterNodeChange(_ klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	v := p.book.current()
	d, err := p.book.demand(v, pod)
	if err != nil {
		return fwk.Queue, nil //nolint:nilerr // what it needs is not known
	}
	marks := p.book.marksOf(v, after)
	if before != nil {
		was := v.set.MarksOf(before)
		switch {
		case was == marks:
			return fwk.QueueSkip, nil
		case d.UsesLicenses():
			p.book.ledger.Mark(after.Name, v.set, marks)
			return fwk.Queue, nil
		case d.Forbids(was) == "":
			return fwk.QueueSkip, nil
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
	v := p.book.current()
	was, err := p.book.demand(v, before)
	is, errNow := p.book.demand(v, after)
	if err == nil && errNow == nil && was.Key() == is.Key() {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
