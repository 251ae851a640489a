package podview

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// InPlaceOfClaims returns a copy of the pod without the claims that were made for it from templates, whose first
// container requests more instead.
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

// Offering returns a copy of the node with more allocatable resources.
func Offering(node *v1.Node, more v1.ResourceList) *v1.Node {
	out := *node
	out.Status.Allocatable = withMore(node.Status.Allocatable, more)
	return &out
}

// withMore returns a copy of the list in which more replaces or adds resources.
func withMore(list, more v1.ResourceList) v1.ResourceList {
	out := maps.Clone(list)
	if out == nil {
		out = v1.ResourceList{}
	}
	maps.Copy(out, more)
	return out
}

// NeverPreempts reports whether the pod's preemption policy is Never.
func NeverPreempts(pod *v1.Pod) bool {
	return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == v1.PreemptNever
}

// Finished reports whether a pod has ended, and so uses nothing of its node.
func Finished(pod *v1.Pod) bool {
	return slices.Contains([]v1.PodPhase{v1.PodSucceeded, v1.PodFailed}, pod.Status.Phase)
}

// ScheduledAt returns when the pod was scheduled, false without the condition.
func ScheduledAt(pod *v1.Pod) (time.Time, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}
