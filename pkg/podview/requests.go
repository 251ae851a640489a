package podview

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Requests is resource.PodRequests, but returns the list of a pod that has only one without a copy, as most pods do.
// The result must not be changed.
func Requests(pod *v1.Pod) v1.ResourceList {
	if c, one := onlyRequests(pod); one {
		return c.Resources.Requests
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// RequestsNow is Requests for a pod that may be resized while it runs: what its containers have counts as well.
func RequestsNow(pod *v1.Pod) v1.ResourceList {
	if c, one := onlyRequests(pod); one && given(pod, c) {
		return c.Resources.Requests
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
}

// noContainer stands for the container of a pod that requests nothing.
var noContainer v1.Container

// onlyRequests returns the container with all requests of the pod, and false if several lists have to be added.
func onlyRequests(pod *v1.Pod) (*v1.Container, bool) {
	if len(pod.Spec.Overhead) > 0 || resource.IsPodLevelRequestsSet(pod) {
		return nil, false
	}
	for i := range pod.Spec.InitContainers {
		if len(pod.Spec.InitContainers[i].Resources.Requests) > 0 {
			return nil, false
		}
	}
	only := &noContainer
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if len(c.Resources.Requests) == 0 {
			continue
		}
		if only != &noContainer {
			return nil, false
		}
		only = c
	}
	return only, true
}

// given reports whether the containers have what they request, by the status of the pod. only is the container with
// requests.
func given(pod *v1.Pod, only *v1.Container) bool {
	if resource.IsPodResizeInfeasible(pod) {
		return false
	}
	for _, statuses := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			var requested v1.ResourceList
			if s.Name == only.Name {
				requested = only.Resources.Requests
			}
			if s.AllocatedResources != nil && !sameAmounts(s.AllocatedResources, requested) ||
				s.Resources != nil && s.Resources.Requests != nil && !sameAmounts(s.Resources.Requests, requested) {
				return false
			}
		}
	}
	return true
}

func sameAmounts(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		other, ok := b[name]
		if !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
