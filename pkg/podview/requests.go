package podview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	none := len(pod.Status.ContainerStatuses)+len(pod.Status.InitContainerStatuses) == 0
	if c, one := onlyRequests(pod); one && none && !resource.IsPodResizeInfeasible(pod) {
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

// PodImages returns the names of the pod's images in the form in which nodes list them, with a tag.
func PodImages(pod *v1.Pod) []string {
	names := make([]string, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	add := func(name string) {
		if strings.LastIndexByte(name, ':') <= strings.LastIndexByte(name, '/') {
			name += ":latest"
		}
		names = append(names, name)
	}
	for i := range pod.Spec.InitContainers {
		add(pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Image)
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			add(image.Reference)
		}
	}
	return names
}

// PodNeeds returns the CPU, in thousandths of a core, and the bytes of memory and ephemeral storage that a pod
// requests.
func PodNeeds(pod *v1.Pod) (milliCPU, memory, storage int64) {
	requests := Requests(pod)
	return requests.Cpu().MilliValue(), requests.Memory().Value(), requests.StorageEphemeral().Value()
}

// DescribeRequest returns the requests of a pod as text: its extended resources or, without any, all others.
func DescribeRequest(pod *v1.Pod) string {
	requests := Requests(pod)
	var extended, basic []string
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		q := requests[name]
		text := q.String() + " " + string(name)
		if strings.Contains(string(name), "/") {
			extended = append(extended, text)
		} else {
			basic = append(basic, text)
		}
	}
	switch {
	case len(extended) > 0:
		return strings.Join(extended, " + ")
	case len(basic) > 0:
		return strings.Join(basic, " + ")
	default:
		return "pod"
	}
}

// HasHostPorts reports whether the pod asks for ports of its node.
func HasHostPorts(pod *v1.Pod) bool {
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort != 0 {
				return true
			}
		}
	}
	return false
}

// OfferedResources returns the names of the node's allocatable resources that are not zero, sorted.
func OfferedResources(node *v1.Node) []string {
	var names []string
	for name, amount := range node.Status.Allocatable {
		if !amount.IsZero() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// AskedResource is a resource of a container, with the path of its resource list in the pod's spec.
type AskedResource struct{ Path, Resource string }

// AskedResources returns the resources of all containers of a pod, limits before requests.
func AskedResources(pod *v1.Pod) []AskedResource {
	var asked []AskedResource
	add := func(path string, amounts v1.ResourceList) {
		for name := range amounts {
			asked = append(asked, AskedResource{path, string(name)})
		}
	}
	for field, containers := range map[string][]v1.Container{"initContainers": pod.Spec.InitContainers,
		"containers": pod.Spec.Containers} {
		for i := range containers {
			path := fmt.Sprintf("%s[%d].resources.", field, i)
			add(path+"limits", containers[i].Resources.Limits)
			add(path+"requests", containers[i].Resources.Requests)
		}
	}
	slices.SortFunc(asked, func(a, b AskedResource) int {
		return strings.Compare(a.Path+" "+a.Resource, b.Path+" "+b.Resource)
	})
	return asked
}

// Allocatable returns the node's allocatable resources, which must not be changed.
func Allocatable(node *v1.Node) v1.ResourceList { return node.Status.Allocatable }
