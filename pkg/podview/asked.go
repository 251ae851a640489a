package podview

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

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
