package gangloop

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// capacityFreed wakes pods for which there is room on a node because a pod that was nominated for it has gone to
// another. kube-scheduler wakes them when such a pod is deleted or nominated elsewhere, and not when it is bound
// elsewhere (kubernetes/kubernetes#134859): they would wait for minutes.
type capacityFreed struct {
	// move tries pods again as if the given one had been deleted from its nominated node.
	move atomic.Pointer[func(*v1.Pod)]
}

// listen takes the queue that pods are woken in.
func (v *capacityFreed) listen(queue internalqueue.SchedulingQueue) {
	move := func(pod *v1.Pod) {
		priority := corev1helpers.PodPriority(pod)
		// Pods of higher priority were not turned away for it.
		concerned := func(other *v1.Pod) bool { return corev1helpers.PodPriority(other) <= priority }
		queue.MoveAllToActiveOrBackoffQueue(klog.Background(), framework.EventAssignedPodDelete, pod, nil, concerned)
	}
	v.move.Store(&move)
}

// see takes a change of a pod.
func (v *capacityFreed) see(old, pod *v1.Pod) {
	if boundElsewhere(old, pod) {
		if move := v.move.Load(); move != nil {
			(*move)(old)
		}
	}
}

// boundElsewhere reports whether the pod has got another node than the one for which it was nominated.
func boundElsewhere(old, pod *v1.Pod) bool {
	nominated := old.Status.NominatedNodeName
	return old.UID == pod.UID && old.Spec.NodeName == "" && pod.Spec.NodeName != "" && nominated != "" &&
		nominated != pod.Spec.NodeName
}
