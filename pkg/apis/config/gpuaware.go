package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// +kubebuilder:object:root=true

// GPUAwareArgs are the arguments of the GPUAware plugin. Keep `resources`, `sharedResources`, `slicePrefixes`,
// `deviceDrivers` and `labels` equal to those of CostOptimized.
type GPUAwareArgs struct {
	metav1.TypeMeta `json:",inline"`

	// What is done with free GPUs. `Pack`: the remaining GPUs are kept as useful as possible. `Spread`: the nodes with
	// the most free GPUs are preferred. Default `Pack`.
	Strategy *GPUStrategy `json:"strategy,omitempty"`

	// Scale the terms of a placement's expected waste.
	Weights *GPUWeights `json:"weights,omitempty"`

	// The names by which GPUs are known.
	wellknown.GPUNames `json:",inline"`

	// Least memory, in MiB, of each GPU or slice of the profile's pods; a node of unknown memory does not meet it. A
	// pod may ask for more by annotation. From 0 to 1073741824, default 0.
	MinMemoryMiB *int32 `json:"minMemoryMiB,omitempty"`

	// Least allocatable CPU of a node, in thousandths of a core, for the profile's pods without GPUs that have the
	// label `workload-type: CPU-intensive`. From 0, the default, which allows any node.
	CPUIntensiveMinMilliCPU *int64 `json:"cpuIntensiveMinMilliCPU,omitempty"`

	// Reads measured use and faults of GPUs from Prometheus. Off by default.
	Signals *GPUSignals `json:"signals,omitempty"`

	// What counts of pods on a node with shared GPUs whose devices this scheduler did not assign. `Requested`: what
	// they ask for by resources, which quotas count, and GPUs that the node's agent reports in use. `Annotated`: what
	// their annotations say as well, for clusters where tenants cannot write these, as with the policy
	// `berth-pod-devices`. Default `Requested`.
	UnassignedShares *UnassignedShares `json:"unassignedShares,omitempty"`

	// How many of the best nodes the other plugins of the profile look at, where the scores of Berth's plugins can tell
	// which those are; 0 for all nodes. If CostOptimized is in the profile, too, the greater number counts, and 0
	// overrides any. From 0 to 100000, default 64.
	Candidates *int32 `json:"candidates,omitempty"`
}

// GPUStrategy says whether GPU work is packed or spread.
type GPUStrategy string

// What the fields of GPUAwareArgs describe.
const (
	GPUStrategyPack   GPUStrategy = "Pack"
	GPUStrategySpread GPUStrategy = "Spread"

	UnassignedSharesRequested UnassignedShares = "Requested"
	UnassignedSharesAnnotated UnassignedShares = "Annotated"
)

// UnassignedShares says what is believed of pods that another scheduler, or none, placed on a node with shared GPUs.
type UnassignedShares string

// GPUWeights scale the terms of a placement's expected waste. Terms are in milli-GPU, so that they can be compared:
// 1000 is one GPU lost. Each weight is from 0, which switches its term off, to 100000.
type GPUWeights struct {
	// Multiplies, in percent, the growth of the GPU that is expected to stay unusable for work like that which runs.
	// Default 100.
	PackingPercent *int32 `json:"packingPercent,omitempty"`
	// Waste of leaving 128 cores and 8 GPUs free on the node. Default 30.
	BestFit *int32 `json:"bestFit,omitempty"`
	// Waste of taking an empty node of four or more GPUs into use while the nodes in use are idle; it counts for the
	// idle part of their GPUs. Smaller nodes cost less. Default 4000.
	Opening *int32 `json:"opening,omitempty"`
	// Multiplies, in percent, the worth of the places for large pods that a placement takes away. Default 100.
	HostsPercent *int32 `json:"hostsPercent,omitempty"`
	// Waste, per GPU, of a model whose demand per capacity is 1 above that of the least wanted model that the pod
	// accepts. Default 1000.
	Scarcity *int32 `json:"scarcity,omitempty"`
	// Multiplies, in percent, the loss of link quality among a pod's GPUs. For a pod that does not ask for links, a
	// fifth of it counts, against the best set of GPUs on the node. Default 100.
	LinksPercent *int32 `json:"linksPercent,omitempty"`
	// Waste of sharing a GPU that is measured to be fully busy. Default 50.
	Utilisation *int32 `json:"utilisation,omitempty"`
	// Waste, per GPU, of whole GPUs on a node that is measured to be fully busy beyond what its pods hold, where the
	// kubelet chooses devices. Default 20.
	ForeignUse *int32 `json:"foreignUse,omitempty"`
	// Waste of sharing a GPU whose memory is measured to be full. Default 20.
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
	setDefault(&a.Weights, GPUWeights{})
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
		validateGPUSignals(a.Signals, path.Child("signals")),
		validateEnum(path.Child("unassignedShares"), *a.UnassignedShares,
			[]UnassignedShares{UnassignedSharesRequested, UnassignedSharesAnnotated}),
		validateRange(path.Child("candidates"), a.Candidates, 0, maxCandidates),
	).ToAggregate()
}
