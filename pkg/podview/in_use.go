package podview

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// InUse says whether any pod keeps the node from being given back: one that does not belong to the node itself and is
// not already on its way out.
func InUse(info fwk.NodeInfo) bool {
	for _, p := range info.GetPods() {
		if KeepsNode(p.GetPod()) {
			return true
		}
	}
	return false
}

// KeepsNode says whether a pod on a node keeps it from being given back.
func KeepsNode(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && !BelongsToNode(pod)
}
