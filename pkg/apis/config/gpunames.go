package config

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/wellknown"
)

// GPUNames are the names by which GPUs are known. GPUAware and CostOptimized have them alike, so that a profile with
// both counts and prices the same GPUs.
type GPUNames struct {
	// Resources are extended resources whose unit is a GPU. Of this and the following lists the first entry that an
	// object carries counts. Default nvidia.com/gpu, amd.com/gpu, gpu.intel.com/xe, gpu.intel.com/i915.
	Resources []string `json:"resources,omitempty"`

	// SharedResources are extended resources whose unit is a time slice. Default nvidia.com/gpu.shared.
	SharedResources []string `json:"sharedResources,omitempty"`

	// SlicePrefixes are prefixes of extended resources whose unit is a hardware slice. Default nvidia.com/mig-.
	SlicePrefixes []string `json:"slicePrefixes,omitempty"`

	// DeviceDrivers are drivers of dynamic resource allocation whose devices are GPUs. A claim is one for GPUs if such a
	// device would be allocated for it. Default gpu.nvidia.com, gpu.amd.com, gpu.intel.com.
	DeviceDrivers []string `json:"deviceDrivers,omitempty"`

	// Labels are the node labels that describe GPUs.
	Labels *GPULabels `json:"labels,omitempty"`
}

// GPULabels are the keys of node labels that describe GPUs, in order of preference. The defaults are those of NVIDIA's
// GPU feature discovery, AMD's and Intel's labellers, and of published examples. The labels of providers count after
// them and are no args.
type GPULabels struct {
	// Product holds the model.
	Product []string `json:"product,omitempty"`
	// Memory holds the memory per GPU: MiB, or GiB where the key ends in -gb, or a number with unit.
	Memory []string `json:"memory,omitempty"`
	// Count holds the number of physical GPUs.
	Count []string `json:"count,omitempty"`
	// Replicas holds into how many time slices each GPU is cut.
	Replicas []string `json:"replicas,omitempty"`
	// Generation holds a compute capability or a family.
	Generation []string `json:"generation,omitempty"`
	// Interconnect says nvlink where it connects all GPUs of the node.
	Interconnect []string `json:"interconnect,omitempty"`
}

// Names are the names as those who read nodes and pods know them. Defaults must be set.
func (n *GPUNames) Names() wellknown.GPUNames {
	l := n.Labels
	return wellknown.GPUNames{
		Resources:          n.Resources,
		SharedResources:    n.SharedResources,
		SlicePrefixes:      n.SlicePrefixes,
		ProductLabels:      l.Product,
		MemoryLabels:       l.Memory,
		CountLabels:        l.Count,
		ReplicasLabels:     l.Replicas,
		GenerationLabels:   l.Generation,
		InterconnectLabels: l.Interconnect,
		Drivers:            n.DeviceDrivers,
	}
}

func setDefaultsGPUNames(n *GPUNames) {
	names := wellknown.DefaultGPUNames()
	setDefaultList(&n.Resources, names.Resources)
	setDefaultList(&n.SharedResources, names.SharedResources)
	setDefaultList(&n.SlicePrefixes, names.SlicePrefixes)
	setDefaultList(&n.DeviceDrivers, names.Drivers)
	if n.Labels == nil {
		n.Labels = &GPULabels{}
	}
	l := n.Labels
	setDefaultList(&l.Product, names.ProductLabels)
	setDefaultList(&l.Memory, names.MemoryLabels)
	setDefaultList(&l.Count, names.CountLabels)
	setDefaultList(&l.Replicas, names.ReplicasLabels)
	setDefaultList(&l.Generation, names.GenerationLabels)
	setDefaultList(&l.Interconnect, names.InterconnectLabels)
}

// setDefaultList keeps a list that was given empty: it switches the names off.
func setDefaultList(field *[]string, value []string) {
	if *field == nil {
		*field = value
	}
}

func validateGPUNames(path *field.Path, n *GPUNames) field.ErrorList {
	var all field.ErrorList
	if len(n.Resources) == 0 {
		all = append(all, field.Required(path.Child("resources"), "name at least one extended resource"))
	}
	l, labels := n.Labels, path.Child("labels")
	for _, f := range []struct {
		path *field.Path
		list []string
	}{
		{path.Child("resources"), n.Resources}, {path.Child("sharedResources"), n.SharedResources},
		{labels.Child("product"), l.Product}, {labels.Child("memory"), l.Memory}, {labels.Child("count"), l.Count},
		{labels.Child("replicas"), l.Replicas}, {labels.Child("generation"), l.Generation},
		{labels.Child("interconnect"), l.Interconnect},
	} {
		all = append(all, validateKeys(f.path, f.list)...)
	}
	for i, prefix := range n.SlicePrefixes {
		if prefix == "" {
			all = append(all, field.Invalid(path.Child("slicePrefixes").Index(i), prefix,
				"want a prefix such as nvidia.com/mig-"))
		}
	}
	for i, driver := range n.DeviceDrivers {
		for _, problem := range validation.IsDNS1123Subdomain(driver) {
			all = append(all, field.Invalid(path.Child("deviceDrivers").Index(i), driver, problem))
		}
	}
	return all
}

// validateKeys refuses what cannot be a label key or resource name, and duplicates.
func validateKeys(path *field.Path, keys []string) field.ErrorList {
	var all field.ErrorList
	seen := map[string]bool{}
	for i, key := range keys {
		for _, problem := range validation.IsQualifiedName(key) {
			all = append(all, field.Invalid(path.Index(i), key, problem))
		}
		if seen[key] {
			all = append(all, field.Duplicate(path.Index(i), key))
		}
		seen[key] = true
	}
	return all
}
