package gpuaware

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/podview"
)

// opened reports that a node whose labels, taints or cordon have changed may take the pod once others make way, and
// could not before.
//
// GPUAware is asked before the stock filters, so of a full node that these would refuse as well it alone is said to
// have refused the pod. Preemption does ask them, and does not help while they refuse; their own events do not wake a
// pod that they are not known to have refused.
func opened(pod *v1.Pod, before, after *v1.Node) bool {
	if before == nil || ptr.Deref(pod.Spec.PreemptionPolicy, v1.PreemptLowerPriority) == v1.PreemptNever ||
		!podview.Admits(after, pod) {
		return false
	}
	return !podview.Admits(before, pod) || hasVolumes(pod) && moved(before, after)
}

func hasVolumes(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return false
}

// moved reports whether the node is in another zone or region, by which volumes choose.
func moved(before, after *v1.Node) bool {
	return before.Labels[v1.LabelTopologyZone] != after.Labels[v1.LabelTopologyZone] ||
		before.Labels[v1.LabelTopologyRegion] != after.Labels[v1.LabelTopologyRegion]
}
