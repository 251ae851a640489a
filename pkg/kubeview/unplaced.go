package kubeview

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

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

// WithoutMadeClaims returns a copy of the pod without the claims that were made for it from templates.
func WithoutMadeClaims(pod *v1.Pod) *v1.Pod {
	out := pod.DeepCopy()
	made := map[string]bool{}
	for _, s := range pod.Status.ResourceClaimStatuses {
		made[s.Name] = true
	}
	out.Status.ResourceClaimStatuses = nil
	out.Spec.ResourceClaims = slices.DeleteFunc(out.Spec.ResourceClaims, func(c v1.PodResourceClaim) bool { return made[c.Name] })
	for _, containers := range [][]v1.Container{out.Spec.InitContainers, out.Spec.Containers} {
		for i := range containers {
			containers[i].Resources.Claims = slices.DeleteFunc(containers[i].Resources.Claims, func(c v1.ResourceClaim) bool { return made[c.Name] })
		}
	}
	return out
}

// WithoutGang returns a copy of the pod that is a member of no gang: without its labels and annotations or, with byOwner set, also
// without its controller, which may make it one.
func WithoutGang(pod *v1.Pod, byOwner bool) *v1.Pod {
	out := pod.DeepCopy()
	for _, key := range []string{schedulingv1alpha1.PodGroupLabel, gangNameLabel, gangMinAvailableLabel} {
		delete(out.Labels, key)
	}
	delete(out.Annotations, GangKey)
	if byOwner {
		out.OwnerReferences = nil
		delete(out.Labels, leaderWorkerSetNameLabel)
	}
	return out
}

// Finished says whether a pod has ended and so holds nothing of its node.
func Finished(pod *v1.Pod) bool {
	return slices.Contains([]v1.PodPhase{v1.PodSucceeded, v1.PodFailed}, pod.Status.Phase)
}

// ScheduledAt is when the pod was given its node; false while its status does not say.
func ScheduledAt(pod *v1.Pod) (time.Time, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}
