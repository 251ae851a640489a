package podview

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// leavingTaints mark nodes that are about to be removed or given back.
var leavingTaints = []string{
	"karpenter.sh/disrupted",
	"aws-node-termination-handler/spot-itn",
	"aws-node-termination-handler/rebalance-recommendation",
	"cloud.google.com/impending-node-termination",
	"ToBeDeletedByClusterAutoscaler",
}

// Leaving reports whether a node is about to go or being deleted.
func Leaving(node *v1.Node) bool {
	return node.DeletionTimestamp != nil || LeavingTaint(node) != ""
}

// keepAnnotations keep an autoscaler from giving a node back even when it is empty.
var keepAnnotations = []string{
	"cluster-autoscaler.kubernetes.io/scale-down-disabled",
	"karpenter.sh/do-not-disrupt",
}

// Removable reports whether an autoscaler may give the node back when it is empty.
func Removable(node *v1.Node) bool {
	return !slices.ContainsFunc(keepAnnotations, func(key string) bool { return node.Annotations[key] == "true" })
}

// EvictableKey is the annotation of a pod that says whether autoscalers may evict it.
const EvictableKey = "cluster-autoscaler.kubernetes.io/safe-to-evict"

// Undisturbed returns the annotation by which a pod asks autoscalers not to evict it, empty if it does not.
func Undisturbed(pod *v1.Pod) string {
	for _, key := range keepAnnotations {
		if pod.Annotations[key] == "true" {
			return key
		}
	}
	if pod.Annotations[EvictableKey] == "false" {
		return EvictableKey
	}
	return ""
}

// LeavingTaint returns the first taint that marks a node as about to go, empty for none.
func LeavingTaint(node *v1.Node) string {
	for _, t := range node.Spec.Taints {
		if IsLeavingTaint(t.Key) {
			return t.Key
		}
	}
	return ""
}

// IsLeavingTaint reports whether a taint marks nodes that are about to go.
func IsLeavingTaint(key string) bool { return slices.Contains(leavingTaints, key) }

// NodeSize returns the allocatable CPU and memory of a node as text.
func NodeSize(node *v1.Node) string {
	cores, bytes := node.Status.Allocatable.Cpu().Value(), node.Status.Allocatable.Memory().Value()
	return fmt.Sprintf("%d cores, %d GiB", cores, bytes>>30)
}
