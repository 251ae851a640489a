package podview

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// InPlaceOfClaims returns a copy of the pod that asks for more resources, in its first container, in the place of the
// claims that were made for it from templates.
func InPlaceOfClaims(pod *v1.Pod, more v1.ResourceList) *v1.Pod {
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
	asks := &out.Spec.Containers[0].Resources
	asks.Requests = withMore(asks.Requests, more)
	return out
}

// Offering returns a copy of the node that offers more resources.
func Offering(node *v1.Node, more v1.ResourceList) *v1.Node {
	out := *node
	out.Status.Allocatable = withMore(node.Status.Allocatable, more)
	return &out
}

// withMore returns a copy of the list with more resources.
func withMore(list, more v1.ResourceList) v1.ResourceList {
	out := maps.Clone(list)
	if out == nil {
		out = v1.ResourceList{}
	}
	maps.Copy(out, more)
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
