package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// +kubebuilder:object:root=true

// GPUAwareArgs tunes the GPUAware plugin.
type GPUAwareArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Strategy is Pack or Spread. Default Pack.
	Strategy *GPUStrategy `json:"strategy,omitempty"`

	// Weights scale the terms of a placement's expected waste.
	Weights *GPUWeights `json:"weights,omitempty"`

	// Resources are extended resources of which one unit is a GPU. Of this and the following lists the first entry that
	// an object carries counts. Default nvidia.com/gpu, amd.com/gpu, gpu.intel.com/xe, gpu.intel.com/i915.
	Resources []string `json:"resources,omitempty"`

	// SharedResources are extended resources of which one unit is a time slice. Default nvidia.com/gpu.shared.
	SharedResources []string `json:"sharedResources,omitempty"`

	// SlicePrefixes are prefixes of extended resources of which one unit is a hardware slice. Default nvidia.com/mig-.
	SlicePrefixes []string `json:"slicePrefixes,omitempty"`

	// DeviceDrivers are drivers of dynamic resource allocation whose devices are GPUs. A claim is one for GPUs if such a
	// device would be allocated for it. Default gpu.nvidia.com, gpu.amd.com, gpu.intel.com.
	DeviceDrivers []string `json:"deviceDrivers,omitempty"`

	// Labels are the node labels that describe GPUs.
	Labels *GPULabels `json:"labels,omitempty"`

	// Signals reads measured utilisation and health from Prometheus. Off when left out.
	Signals *GPUSignals `json:"signals,omitempty"`

	// Candidates is how many of the best nodes the other plugins of the profile look at, where the scores of Berth's plugins
	// can tell which those are; 0 for all nodes always. Default 64.
	Candidates *int32 `json:"candidates,omitempty"`
}

// GPUStrategy says whether GPU work is packed or spread.
type GPUStrategy string

// What GPUAware does with free GPUs.
const (
	// GPUStrategyPack keeps the remaining GPUs as useful as possible.
	GPUStrategyPack GPUStrategy = "Pack"
	// GPUStrategySpread prefers the nodes with the most free GPUs.
	GPUStrategySpread GPUStrategy = "Spread"
)

// GPUWeights scale the terms of a placement's expected waste; 0 switches a term off. Terms are in milli-GPU, so that
// they can be weighed against each other: 1000 is one GPU lost.
type GPUWeights struct {
	// PackingPercent multiplies the growth of the GPU that is expected to stay unusable. Default 100.
	PackingPercent *int32 `json:"packingPercent,omitempty"`
	// BestFit is the waste of leaving 128 cores and 8 GPUs free on the node. Default 30.
	BestFit *int32 `json:"bestFit,omitempty"`
	// Sliver is the waste of leaving nearly all of a GPU free beside a share. Default 100.
	Sliver *int32 `json:"sliver,omitempty"`
	// Opening is the waste of taking an empty node into use, of four and more GPUs; smaller ones cost less. Default 350.
	Opening *int32 `json:"opening,omitempty"`
	// HostsPercent multiplies the worth of the places for large pods that a placement takes away. Default 100.
	HostsPercent *int32 `json:"hostsPercent,omitempty"`
	// Scarcity is the waste, per GPU, of a model whose demand per capacity is 1 above the least acceptable one's. Default 1000.
	Scarcity *int32 `json:"scarcity,omitempty"`
	// LinksPercent multiplies the loss of link quality among a pod's GPUs. Default 100.
	LinksPercent *int32 `json:"linksPercent,omitempty"`
	// OverProvisioning is the waste, per GPU, of the most capable GPU where a lesser one would do. Default 50.
	OverProvisioning *int32 `json:"overProvisioning,omitempty"`
	// Utilisation is the waste of sharing a GPU that is measured fully busy. Default 50.
	Utilisation *int32 `json:"utilisation,omitempty"`
	// AvoidGPUNodes is the waste of putting a pod labelled CPU-intensive on a GPU node. Default 4000.
	AvoidGPUNodes *int32 `json:"avoidGPUNodes,omitempty"`
}

// GPULabels are the keys of node labels that describe GPUs, in order of preference. The defaults are those of NVIDIA's
// GPU feature discovery, AMD's and Intel's labellers, and of published examples.
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
	// Clique holds the NVLink domain that spans nodes.
	Clique []string `json:"clique,omitempty"`
}

// maxGPUWeight is 100 GPUs of waste, or a hundred times a term's natural size.
const maxGPUWeight = 100_000

const (
	// defaultCandidates is one value for all plugins: where they differ in a profile, the greatest counts.
	defaultCandidates = int32(64)
	// maxCandidates is more than any cluster that Kubernetes supports has nodes.
	maxCandidates = 100_000
)

// SetDefaultsGPUAwareArgs fills the fields that were left out.
func SetDefaultsGPUAwareArgs(a *GPUAwareArgs) {
	setDefault(&a.Strategy, GPUStrategyPack)
	if a.Weights == nil {
		a.Weights = &GPUWeights{}
	}
	w, d := a.Weights, gpu.DefaultWeights()
	setDefault(&w.PackingPercent, int32(d.Packing*100))
	setDefault(&w.BestFit, int32(d.BestFit))
	setDefault(&w.Sliver, int32(d.Sliver))
	setDefault(&w.Opening, int32(d.Opening))
	setDefault(&w.HostsPercent, int32(d.Hosts*100))
	setDefault(&w.Scarcity, int32(d.Scarcity))
	setDefault(&w.LinksPercent, int32(d.Links*100))
	setDefault(&w.OverProvisioning, int32(d.OverProvisioning))
	setDefault(&w.Utilisation, int32(d.Utilization))
	setDefault(&w.AvoidGPUNodes, int32(d.Avoid))

	keys := kubeview.DefaultGPUKeys()
	setDefaultList(&a.Resources, keys.Resources)
	setDefaultList(&a.SharedResources, keys.SharedResources)
	setDefaultList(&a.SlicePrefixes, keys.SlicePrefixes)
	setDefaultList(&a.DeviceDrivers, kubeview.DefaultDeviceDrivers())
	if a.Labels == nil {
		a.Labels = &GPULabels{}
	}
	l := a.Labels
	setDefaultList(&l.Product, keys.ProductLabels)
	setDefaultList(&l.Memory, keys.MemoryLabels)
	setDefaultList(&l.Count, keys.CountLabels)
	setDefaultList(&l.Replicas, keys.ReplicasLabels)
	setDefaultList(&l.Generation, keys.GenerationLabels)
	setDefaultList(&l.Interconnect, keys.InterconnectLabels)
	setDefaultList(&l.Clique, keys.CliqueLabels)
	SetDefaultsGPUSignals(a.Signals)
	setDefault(&a.Candidates, defaultCandidates)
}

// setDefaultList keeps a list that was given empty: it switches the names off.
func setDefaultList(field *[]string, value []string) {
	if *field == nil {
		*field = value
	}
}

// ValidateGPUAwareArgs checks defaulted args that stand at path in the configuration.
func ValidateGPUAwareArgs(path *field.Path, a *GPUAwareArgs) error {
	all := validateEnum(path.Child("strategy"), *a.Strategy, []GPUStrategy{GPUStrategyPack, GPUStrategySpread})
	w, weights := a.Weights, path.Child("weights")
	for _, f := range []struct {
		name  string
		value *int32
	}{
		{"packingPercent", w.PackingPercent}, {"bestFit", w.BestFit}, {"sliver", w.Sliver}, {"opening", w.Opening},
		{"hostsPercent", w.HostsPercent}, {"scarcity", w.Scarcity},
		{"linksPercent", w.LinksPercent}, {"overProvisioning", w.OverProvisioning}, {"utilisation", w.Utilisation},
		{"avoidGPUNodes", w.AvoidGPUNodes},
	} {
		all = append(all, validateRange(weights.Child(f.name), int64(*f.value), 0, maxGPUWeight)...)
	}
	if len(a.Resources) == 0 {
		all = append(all, field.Required(path.Child("resources"), "name at least one extended resource"))
	}
	l, labels := a.Labels, path.Child("labels")
	for _, f := range []struct {
		path *field.Path
		list []string
	}{
		{path.Child("resources"), a.Resources}, {path.Child("sharedResources"), a.SharedResources},
		{labels.Child("product"), l.Product}, {labels.Child("memory"), l.Memory}, {labels.Child("count"), l.Count},
		{labels.Child("replicas"), l.Replicas}, {labels.Child("generation"), l.Generation},
		{labels.Child("interconnect"), l.Interconnect}, {labels.Child("clique"), l.Clique},
	} {
		all = append(all, validateKeys(f.path, f.list)...)
	}
	for i, prefix := range a.SlicePrefixes {
		if prefix == "" {
			all = append(all, field.Invalid(path.Child("slicePrefixes").Index(i), prefix, "want a prefix such as nvidia.com/mig-"))
		}
	}
	for i, driver := range a.DeviceDrivers {
		for _, problem := range validation.IsDNS1123Subdomain(driver) {
			all = append(all, field.Invalid(path.Child("deviceDrivers").Index(i), driver, problem))
		}
	}
	all = append(all, ValidateGPUSignals(a.Signals, path.Child("signals"))...)
	all = append(all, validateRange(path.Child("candidates"), int64(*a.Candidates), 0, maxCandidates)...)
	return all.ToAggregate()
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
