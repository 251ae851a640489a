package podview

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// InUse reports whether any pod keeps the node from being given back.
func InUse(info fwk.NodeInfo) bool {
	for _, p := range info.GetPods() {
		if KeepsNode(p.GetPod()) {
			return true
		}
	}
	return false
}

// KeepsNode reports whether a pod keeps its node from being given back: it neither belongs to the node nor terminates.
func KeepsNode(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && !BelongsToNode(pod)
}
