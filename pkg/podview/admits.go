package podview

import (
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Admits reports whether the pod's selector, affinity and tolerations let it run on the node. An invalid affinity
// admits no node.
func Admits(node *v1.Node, pod *v1.Pod) bool {
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !matches {
		return false
	}
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append([]v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}}, taints...)
	}
	return Tolerates(pod, taints)
}

// Tolerates reports whether the pod tolerates those of the taints that keep pods off a node.
func Tolerates(pod *v1.Pod, taints []v1.Taint) bool {
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, pod.Spec.Tolerations,
		keepsOff, false)
	return !untolerated
}

// keepsOff reports whether a taint keeps pods off its node.
func keepsOff(t *v1.Taint) bool {
	return t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
}
