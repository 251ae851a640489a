package gpuview

import (
	"slices"
	"strings"
)

// ReadsResource says whether pods ask for GPUs, or parts of them, by the extended resource.
func (k *Keys) ReadsResource(name string) bool { return k.isGPU(name) || isHAMi(name) }

// MakesGPUs says whether a resource or label is in the domain of a maker of GPUs.
func (k *Keys) MakesGPUs(key string) bool { return indexOfMaker(k.Resources, key) >= 0 }

// OfMaker is the first of the resources or labels that is in the same domain as the key, else the first of all.
func OfMaker(names []string, key string) string { return names[max(0, indexOfMaker(names, key))] }

func indexOfMaker(names []string, key string) int {
	return slices.IndexFunc(names, func(name string) bool { return maker(name) == maker(key) })
}

// PodResources are the extended resources by which pods ask for GPUs, or parts of them; slices have names without end.
func (k *Keys) PodResources() []string {
	return slices.Concat(k.Resources, k.SharedResources, shareResources)
}

// DescribingLabels are the labels that are read for what a node's GPUs are, of those the makers set.
func (k *Keys) DescribingLabels() []string {
	return slices.DeleteFunc(k.labels(), func(key string) bool {
		return !strings.Contains(key, "/") || slices.Contains(k.InterconnectLabels, key)
	})
}

// ReadsLabel says whether the label is read for what a node's GPUs are.
func (k *Keys) ReadsLabel(key string) bool { return slices.Contains(k.labels(), key) }

func (k *Keys) labels() []string {
	labels := slices.Concat(k.ProductLabels, k.MemoryLabels, k.CountLabels, k.ReplicasLabels, k.GenerationLabels,
		k.InterconnectLabels, []string{sharingStrategyLabel})
	if slices.Contains(k.GenerationLabels, computeMajorLabel) {
		labels = append(labels, computeMinorLabel)
	}
	return labels
}
