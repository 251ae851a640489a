package process

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// OwnChange is any change of the pod that waits. Annotations have no action type of their own: their changes arrive as
// the general update.
const OwnChange = fwk.Update

// On registers an event of objects of type T. helps reports whether a change helps the pod that waits; before is nil
// for an object that was added, after for one that was deleted.
func On[T any](resource fwk.EventResource, action fwk.ActionType,
	helps func(pod *v1.Pod, before, after T) bool) fwk.ClusterEventWithHint {
	hint := func(_ klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
		before, after, err := util.As[T](oldObj, newObj)
		if err != nil || helps(pod, before, after) {
			return fwk.Queue, err //nolint:wrapcheck // it says what came instead
		}
		return fwk.QueueSkip, nil
	}
	return fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: resource, ActionType: action},
		QueueingHintFn: hint}
}
