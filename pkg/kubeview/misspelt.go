package kubeview

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ReadsResource says whether pods ask for GPUs, or parts of them, by the extended resource.
func (k *GPUKeys) ReadsResource(name string) bool { return k.isGPU(name) || isHAMi(name) }

// MakesGPUs says whether a resource or label is in the domain of a maker of GPUs.
func (k *GPUKeys) MakesGPUs(key string) bool {
	return slices.ContainsFunc(k.Resources, func(known string) bool { return maker(known) == maker(key) })
}

// PodResources are the extended resources by which pods ask for GPUs, or parts of them; slices have names without end.
func (k *GPUKeys) PodResources() []string {
	return slices.Concat(k.Resources, k.SharedResources, shareResources)
}

// DescribingLabels are the labels that are read for what a node's GPUs are, of those the makers set.
func (k *GPUKeys) DescribingLabels() []string {
	return slices.DeleteFunc(k.labels(), func(key string) bool {
		return !strings.Contains(key, "/") || slices.Contains(k.InterconnectLabels, key)
	})
}

// ReadsLabel says whether the label is read for what a node's GPUs are.
func (k *GPUKeys) ReadsLabel(key string) bool { return slices.Contains(k.labels(), key) }

func (k *GPUKeys) labels() []string {
	return slices.Concat(k.ProductLabels, k.MemoryLabels, k.CountLabels, k.ReplicasLabels, k.GenerationLabels, k.CliqueLabels, k.InterconnectLabels)
}

// OfferedResources are the resources of which the kubelet offers something.
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

// AskedResource is a resource that a container asks for, with the path to the amounts in the pod's spec.
type AskedResource struct{ Path, Resource string }

// AskedResources are those of all containers of a pod, limits before requests.
func AskedResources(pod *v1.Pod) []AskedResource {
	var asked []AskedResource
	add := func(path string, amounts v1.ResourceList) {
		for name := range amounts {
			asked = append(asked, AskedResource{path, string(name)})
		}
	}
	for field, containers := range map[string][]v1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
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

// Allocatable is all that a node offers to pods. It must not be changed.
func Allocatable(node *v1.Node) v1.ResourceList { return node.Status.Allocatable }
