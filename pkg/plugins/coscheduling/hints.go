package coscheduling

import (
	"context"
	"maps"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/process"
)

// EventsToRegister names what makes a rejected pod schedulable alone: that it is no member any more, or has no value
// any more that cannot be read; and, of a gang that has started, that it says something else now, or that its group may
// have room in a domain or has begun. What can make a gang fit wakes it in the order of the gangs and a few at a time,
// not all at once and under the queue's lock, as hints would; see loop.
func (q queue) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	misstated := q.shared.settings.classes.misstated
	return []fwk.ClusterEventWithHint{
		process.On(fwk.TargetPod, fwk.UpdatePodLabel, func(_, _, now *v1.Pod) bool { return !q.shared.members.Has(now) }),
		process.On(fwk.TargetPod, process.OwnChange, func(_, before, now *v1.Pod) bool {
			return misstated(before) != nil && misstated(now) == nil ||
				!maps.Equal(before.Annotations, now.Annotations) && q.joins(now) // where it may go, perhaps
		}),
		process.On(fwk.Node, fwk.Add|fwk.UpdateNodeAllocatable|fwk.UpdateNodeLabel|fwk.UpdateNodeTaint,
			func(pod *v1.Pod, _, _ *v1.Node) bool { return q.joins(pod) }),
		process.On(fwk.AssignedPod, fwk.Delete, func(pod, _, _ *v1.Pod) bool { return q.joins(pod) }),
		process.On(fwk.AssignedPod, fwk.Add, q.siblingCame),
	}, nil
}

// siblingCame has a pod tried again for another of its gang, or for any if it has to be near some. It is asked of all
// pods that wait whenever one is bound; whether a pod joins a gang is quickly told, the names of two gangs are not.
func (q queue) siblingCame(pod, _, came *v1.Pod) bool {
	if !q.joins(pod) {
		return false
	}
	a := pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil || q.shared.members.ID(came) == q.shared.members.ID(pod)
}

// joins reports whether the pod joins a gang that has started.
func (q queue) joins(pod *v1.Pod) bool {
	return q.shared.ledger.Cycles.Standing(gang.UID(pod.UID)).Alone
}
