package coscheduling

import (
	"context"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/gang"
)

// EventsToRegister names what makes a rejected pod schedulable alone: that it is no member any more, or has no value
// any more that cannot be read; and, of a gang that has started, that it says something else now, or that its group may
// have room in a domain or has begun. What can make a gang fit wakes it in the order of the gangs and a few at a time,
// not all at once and under the queue's lock, as hints would; see loop.
func (q queue) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	misstated := q.shared.settings.classes.misstated
	return []fwk.ClusterEventWithHint{
		{
			Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodLabel},
			QueueingHintFn: func(_ klog.Logger, _ *v1.Pod, _, obj any) (fwk.QueueingHint, error) {
				if pod, ok := obj.(*v1.Pod); ok && !q.shared.members.Has(pod) {
					return fwk.Queue, nil
				}
				return fwk.QueueSkip, nil
			},
		},
		{
			// Annotations have no action type of their own: their changes arrive as the general update.
			Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update},
			QueueingHintFn: func(_ klog.Logger, _ *v1.Pod, old, obj any) (fwk.QueueingHint, error) {
				before, after, err := util.As[*v1.Pod](old, obj)
				if err != nil {
					return fwk.Queue, err
				}
				if misstated(before) != nil && misstated(after) == nil {
					return fwk.Queue, nil
				}
				if !maps.Equal(before.Annotations, after.Annotations) { // where it may go, perhaps
					return q.joins(after), nil
				}
				return fwk.QueueSkip, nil
			},
		},
		{
			Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable |
				fwk.UpdateNodeLabel | fwk.UpdateNodeTaint},
			QueueingHintFn: func(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) { return q.joins(pod), nil },
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete},
			QueueingHintFn: func(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) { return q.joins(pod), nil },
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add},
			QueueingHintFn: q.siblingCame,
		},
	}, nil
}

// siblingCame has a pod tried again for another of its gang, or for any if it has to be near some. It is asked of all
// pods that wait whenever one is bound; whether a pod joins a gang is quickly told, the names of two gangs are not.
func (q queue) siblingCame(_ klog.Logger, pod *v1.Pod, _, obj any) (fwk.QueueingHint, error) {
	came, ok := obj.(*v1.Pod)
	if !ok || q.joins(pod) == fwk.QueueSkip {
		return fwk.QueueSkip, nil
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil || q.shared.members.ID(came) == q.shared.members.ID(pod) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// joins has a pod tried again that joins a gang which has started.
func (q queue) joins(pod *v1.Pod) fwk.QueueingHint {
	if q.shared.ledger.Cycles.Standing(gang.UID(pod.UID)).Alone {
		return fwk.Queue
	}
	return fwk.QueueSkip
}
