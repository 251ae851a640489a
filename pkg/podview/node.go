package podview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
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

// FailingHardware is the message about a node that is about to go or has failed devices, as a clause without a subject;
// empty for other nodes. Devices have failed if some, but not all, are allocatable: if none is, their plugin may be
// down.
func FailingHardware(node *v1.Node) string {
	switch taint := LeavingTaint(node); {
	case taint != "":
		return "has the taint " + taint
	case node.DeletionTimestamp != nil:
		return "is being deleted"
	}
	for _, name := range slices.Sorted(maps.Keys(node.Status.Capacity)) {
		all, works := node.Status.Capacity[name], node.Status.Allocatable[name]
		if isExtended(name) && !works.IsZero() && works.Cmp(all) < 0 {
			return fmt.Sprintf("offers %s of %s %s", works.String(), all.String(), name)
		}
	}
	return ""
}

// isExtended reports whether the resource is not one of Kubernetes itself.
func isExtended(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)
}
