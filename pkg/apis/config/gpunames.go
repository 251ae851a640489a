package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/wellknown"
)

func setDefaultsGPUNames(n *wellknown.GPUNames) {
	names := wellknown.DefaultGPUNames()
	setDefaultList(&n.Resources, names.Resources)
	setDefaultList(&n.SharedResources, names.SharedResources)
	setDefaultList(&n.SlicePrefixes, names.SlicePrefixes)
	setDefaultList(&n.Drivers, names.Drivers)
	setDefaultList(&n.ProductLabels, names.ProductLabels)
	setDefaultList(&n.MemoryLabels, names.MemoryLabels)
	setDefaultList(&n.CountLabels, names.CountLabels)
	setDefaultList(&n.ReplicasLabels, names.ReplicasLabels)
	setDefaultList(&n.GenerationLabels, names.GenerationLabels)
	setDefaultList(&n.InterconnectLabels, names.InterconnectLabels)
}

// setDefaultList fills a list that was left out. It keeps an empty list, which switches the names off.
func setDefaultList(field *[]string, value []string) {
	if *field == nil {
		*field = value
	}
}

func validateGPUNames(path *field.Path, n *wellknown.GPUNames) field.ErrorList {
	labels := path.Child("labels")
	all := slices.Concat(
		validateKeys(path.Child("resources"), n.Resources),
		validateKeys(path.Child("sharedResources"), n.SharedResources),
		validateKeys(labels.Child("product"), n.ProductLabels),
		validateKeys(labels.Child("memory"), n.MemoryLabels),
		validateKeys(labels.Child("count"), n.CountLabels),
		validateKeys(labels.Child("replicas"), n.ReplicasLabels),
		validateKeys(labels.Child("generation"), n.GenerationLabels),
		validateKeys(labels.Child("interconnect"), n.InterconnectLabels),
	)
	if len(n.Resources) == 0 {
		all = append(all, field.Required(path.Child("resources"), "name at least one extended resource"))
	}
	for i, prefix := range n.SlicePrefixes {
		if prefix == "" {
			all = append(all, field.Invalid(path.Child("slicePrefixes").Index(i), prefix,
				"want a prefix such as nvidia.com/mig-"))
		}
	}
	for i, driver := range n.Drivers {
		for _, problem := range validation.IsDNS1123Subdomain(driver) {
			all = append(all, field.Invalid(path.Child("deviceDrivers").Index(i), driver, problem))
		}
	}
	return all
}

// validateKeys returns errors for bad label keys or resource names, and for duplicates.
func validateKeys(path *field.Path, keys []string) field.ErrorList {
	return validateEach(path, keys, validation.IsQualifiedName)
}
