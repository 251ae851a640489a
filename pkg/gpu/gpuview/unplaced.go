package gpuview

import v1 "k8s.io/api/core/v1"

// Unplaced returns a copy of the pod as it was before a scheduler saw it: without node, devices and history.
func Unplaced(pod *v1.Pod) *v1.Pod {
	out := pod.DeepCopy()
	out.Spec.NodeName = ""
	out.Status = v1.PodStatus{Phase: v1.PodPending, ResourceClaimStatuses: out.Status.ResourceClaimStatuses}
	for _, key := range answerKeys {
		delete(out.Annotations, key)
	}
	return out
}
