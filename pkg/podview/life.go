package podview

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// WithoutMadeClaims returns a copy of the pod without the claims that were made for it from templates.
func WithoutMadeClaims(pod *v1.Pod) *v1.Pod {
	out := pod.DeepCopy()
	made := map[string]bool{}
	for _, s := range pod.Status.ResourceClaimStatuses {
		made[s.Name] = true
	}
	out.Status.ResourceClaimStatuses = nil
	out.Spec.ResourceClaims = slices.DeleteFunc(out.Spec.ResourceClaims,
		func(c v1.PodResourceClaim) bool { return made[c.Name] })
	for _, containers := range [][]v1.Container{out.Spec.InitContainers, out.Spec.Containers} {
		for i := range containers {
			containers[i].Resources.Claims = slices.DeleteFunc(containers[i].Resources.Claims,
				func(c v1.ResourceClaim) bool { return made[c.Name] })
		}
	}
	return out
}

// NeverPreempts reports whether no pod is evicted for this one.
func NeverPreempts(pod *v1.Pod) bool {
	return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == v1.PreemptNever
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
