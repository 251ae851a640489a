package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// +kubebuilder:object:root=true

// GPUAwareArgs tunes the GPUAware plugin.
type GPUAwareArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Strategy is Pack or Spread. Default Pack.
	Strategy *GPUStrategy `json:"strategy,omitempty"`

	// Weights scale the terms of a placement's expected waste.
	Weights *GPUWeights `json:"weights,omitempty"`

	// The names by which GPUs are known.
	wellknown.GPUNames `json:",inline"`

	// MinMemoryMiB is the least memory of each GPU of the profile's pods. A pod may ask for more by annotation. Default 0.
	MinMemoryMiB *int32 `json:"minMemoryMiB,omitempty"`

	// CPUIntensiveMinMilliCPU is the least allocatable CPU of a node for the profile's pods without GPUs that are labelled
	// workload-type: CPU-intensive. Default 0: any node.
	CPUIntensiveMinMilliCPU *int64 `json:"cpuIntensiveMinMilliCPU,omitempty"`

	// Signals reads measured utilisation and health from Prometheus. Off when left out.
	Signals *GPUSignals `json:"signals,omitempty"`

	// UnassignedShares says what pods count for that are on a node which shares its GPUs without this scheduler's having
	// assigned them their devices. Default Requested.
	UnassignedShares *UnassignedShares `json:"unassignedShares,omitempty"`

	// Candidates is how many of the best nodes the other plugins of the profile look at, where the scores of Berth's
	// plugins can tell which those are; 0 for all nodes always. Default 64.
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

// UnassignedShares says what is believed of pods that another scheduler, or none, placed on a node with shared GPUs.
type UnassignedShares string

// What such pods count for.
const (
	// UnassignedSharesRequested counts what they ask for by resources, which quotas count, and GPUs that the node's agent
	// reports in use. Annotations alone take nothing from others.
	UnassignedSharesRequested UnassignedShares = "Requested"
	// UnassignedSharesAnnotated counts what their annotations say as well. It is for clusters in which tenants cannot
	// write these, as with the policy berth-pod-devices.
	UnassignedSharesAnnotated UnassignedShares = "Annotated"
)

// GPUWeights scale the terms of a placement's expected waste; 0 switches a term off. Terms are in milli-GPU, so that
// they can be weighed against each other: 1000 is one GPU lost.
type GPUWeights struct {
	// PackingPercent multiplies the growth of the GPU that is expected to stay unusable. Default 100.
	PackingPercent *int32 `json:"packingPercent,omitempty"`
	// BestFit is the waste of leaving 128 cores and 8 GPUs free on the node. Default 30.
	BestFit *int32 `json:"bestFit,omitempty"`
	// Opening is the waste of taking an empty node into use, of four and more GPUs, while the nodes in use are idle; it
	// counts for the part of their GPUs that is. Smaller nodes cost less. Default 4000.
	Opening *int32 `json:"opening,omitempty"`
	// HostsPercent multiplies the worth of the places for large pods that a placement takes away. Default 100.
	HostsPercent *int32 `json:"hostsPercent,omitempty"`
	// Scarcity is the waste, per GPU, of a model whose demand per capacity is 1 above the least acceptable one's.
	// Default 1000.
	Scarcity *int32 `json:"scarcity,omitempty"`
	// LinksPercent multiplies the loss of link quality among a pod's GPUs. Default 100.
	LinksPercent *int32 `json:"linksPercent,omitempty"`
	// Utilisation is the waste of sharing a GPU that is measured fully busy. Default 50.
	Utilisation *int32 `json:"utilisation,omitempty"`
	// ForeignUse is the waste, per GPU, of whole GPUs on a node that is measured to be fully busy beyond what its pods
	// hold, where the kubelet chooses devices. Default 20.
	ForeignUse *int32 `json:"foreignUse,omitempty"`
	// Framebuffer is the waste of sharing a GPU whose memory is measured to be full. Default 20.
	Framebuffer *int32 `json:"framebuffer,omitempty"`
}

// maxGPUWeight is 100 GPUs of waste, or a hundred times a term's natural size.
const maxGPUWeight = 100_000

const (
	// defaultCandidates is one value for all plugins: where they differ in a profile, the greatest counts.
	defaultCandidates = int32(64)
	// maxCandidates is more than any cluster that Kubernetes supports has nodes.
	maxCandidates = 100_000
)

// SetDefaults fills the fields that were left out.
func (a *GPUAwareArgs) SetDefaults() {
	setDefault(&a.Strategy, GPUStrategyPack)
	if a.Weights == nil {
		a.Weights = &GPUWeights{}
	}
	w, d := a.Weights, gpu.DefaultWeights()
	setDefault(&w.PackingPercent, int32(d.Packing*100))
	setDefault(&w.BestFit, int32(d.BestFit))
	setDefault(&w.Opening, int32(d.Opening))
	setDefault(&w.HostsPercent, int32(d.Hosts*100))
	setDefault(&w.Scarcity, int32(d.Scarcity))
	setDefault(&w.LinksPercent, int32(d.Links*100))
	setDefault(&w.Utilisation, int32(d.Utilization))
	setDefault(&w.ForeignUse, int32(d.ForeignUse))
	setDefault(&w.Framebuffer, int32(d.Framebuffer))

	setDefaultsGPUNames(&a.GPUNames)
	setDefault(&a.MinMemoryMiB, 0)
	setDefault(&a.CPUIntensiveMinMilliCPU, 0)
	SetDefaultsGPUSignals(a.Signals)
	setDefault(&a.UnassignedShares, UnassignedSharesRequested)
	setDefault(&a.Candidates, defaultCandidates)
}

// Validate checks defaulted args that stand at path in the configuration.
func (a *GPUAwareArgs) Validate(path *field.Path) error {
	w, weights := a.Weights, path.Child("weights")
	return slices.Concat(
		validateEnum(path.Child("strategy"), *a.Strategy, []GPUStrategy{GPUStrategyPack, GPUStrategySpread}),
		validateRange(weights.Child("packingPercent"), w.PackingPercent, 0, maxGPUWeight),
		validateRange(weights.Child("bestFit"), w.BestFit, 0, maxGPUWeight),
		validateRange(weights.Child("opening"), w.Opening, 0, maxGPUWeight),
		validateRange(weights.Child("hostsPercent"), w.HostsPercent, 0, maxGPUWeight),
		validateRange(weights.Child("scarcity"), w.Scarcity, 0, maxGPUWeight),
		validateRange(weights.Child("linksPercent"), w.LinksPercent, 0, maxGPUWeight),
		validateRange(weights.Child("utilisation"), w.Utilisation, 0, maxGPUWeight),
		validateRange(weights.Child("foreignUse"), w.ForeignUse, 0, maxGPUWeight),
		validateRange(weights.Child("framebuffer"), w.Framebuffer, 0, maxGPUWeight),
		validateGPUNames(path, &a.GPUNames),
		validateRange(path.Child("minMemoryMiB"), a.MinMemoryMiB, 0, 1<<30),
		validateRange(path.Child("cpuIntensiveMinMilliCPU"), a.CPUIntensiveMinMilliCPU, 0, 1<<40),
		ValidateGPUSignals(a.Signals, path.Child("signals")),
		validateEnum(path.Child("unassignedShares"), *a.UnassignedShares,
			[]UnassignedShares{UnassignedSharesRequested, UnassignedSharesAnnotated}),
		validateRange(path.Child("candidates"), a.Candidates, 0, maxCandidates),
	).ToAggregate()
}
