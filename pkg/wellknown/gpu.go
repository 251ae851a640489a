package wellknown

// Keys of Berth's own that describe GPUs.
const (
	// GPUMemoryMinKey is the annotation of a pod with the least memory that each of its GPUs must have.
	GPUMemoryMinKey = "berth.dev/gpu-memory-min"
	// GPUModelsKey is the annotation of a pod with the GPU products that it accepts, joined by "|".
	GPUModelsKey = "berth.dev/gpu-models"
	// GPUInterconnectKey is the annotation of a pod that asks for NVLink among its GPUs: required or preferred.
	GPUInterconnectKey = "berth.dev/gpu-interconnect"
	// GPUSharingKey is the annotation of a pod that refuses or accepts GPUs in use by others: exclusive or shared.
	GPUSharingKey = "berth.dev/gpu-sharing"
	// GPUModeKey is the label of a node that says who decides on devices: device-plugin, shared or dra.
	GPUModeKey = "berth.dev/gpu-mode"
	// GPUAgentKey is the label of a node that names the agent there which holds pods to the devices and shares that they
	// are told. HAMi's device plugin needs none: it registers itself.
	GPUAgentKey = "berth.dev/gpu-agent"
	// GPUAssignedKey is the annotation of a pod with the devices that it was given, as JSON. The scheduler writes it
	// before it binds the pod, for those who read annotations. It goes by GPUsAssigned itself.
	GPUAssignedKey = "berth.dev/gpu-assigned"
	// GPULinksKey is the annotation of a node with the links among its GPUs, as JSON.
	GPULinksKey = "berth.dev/gpu-links"
)

// GPUNames are the resource names and node label keys in which GPUs are described, as they stand in the args of
// plugins. Of each list the first that an object carries counts.
//
// +kubebuilder:object:generate=true
type GPUNames struct {
	// Resources are extended resources whose unit is a GPU.
	Resources []string `json:"resources,omitempty"`
	// SharedResources are extended resources whose unit is a time slice of a GPU.
	SharedResources []string `json:"sharedResources,omitempty"`
	// SlicePrefixes are prefixes of extended resources whose unit is a hardware slice of a GPU.
	SlicePrefixes []string `json:"slicePrefixes,omitempty"`
	// Drivers are those of dynamic resource allocation whose devices are GPUs. A claim is one for GPUs if such a device
	// would be allocated for it.
	Drivers []string `json:"deviceDrivers,omitempty"`

	GPULabels `json:"labels,omitempty"`
}

// GPULabels are the keys of node labels that describe GPUs. The labels of providers count after them.
//
// +kubebuilder:object:generate=true
type GPULabels struct {
	// ProductLabels hold the model.
	ProductLabels []string `json:"product,omitempty"`
	// MemoryLabels hold the memory per GPU: a plain number is MiB, or GiB where the key ends in -gb; units G, Gi, M and
	// Mi are understood.
	MemoryLabels []string `json:"memory,omitempty"`
	// CountLabels hold the number of physical GPUs.
	CountLabels []string `json:"count,omitempty"`
	// ReplicasLabels hold into how many time slices each GPU is cut.
	ReplicasLabels []string `json:"replicas,omitempty"`
	// GenerationLabels hold a compute capability ("9.0"), its major version ("9"), a family ("hopper") or the name of a
	// well-known model ("h100").
	GenerationLabels []string `json:"generation,omitempty"`
	// InterconnectLabels say "nvlink" where all GPUs of the node are connected by it.
	InterconnectLabels []string `json:"interconnect,omitempty"`
}

// DefaultGPUNames are the defaults of the args, which are the one source of names for all else: NVIDIA's as GPU feature
// discovery sets them, then AMD's and Intel's, then those of published examples of GPU-aware schedulers.
func DefaultGPUNames() GPUNames {
	return GPUNames{
		Resources:       []string{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915"},
		SharedResources: []string{"nvidia.com/gpu.shared"},
		SlicePrefixes:   []string{"nvidia.com/mig-"},
		Drivers:         []string{"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"},
		GPULabels: GPULabels{
			ProductLabels: []string{"nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product",
				"gpu-type"},
			MemoryLabels: []string{"nvidia.com/gpu.memory", "amd.com/gpu.vram", "gpu.intel.com/memory.max",
				"gpu-memory-gb"},
			CountLabels:        []string{"nvidia.com/gpu.count"},
			ReplicasLabels:     []string{"nvidia.com/gpu.replicas"},
			GenerationLabels:   []string{"nvidia.com/gpu.compute.major", "nvidia.com/gpu.family", "gpu-generation"},
			InterconnectLabels: []string{"gpu-interconnect"},
		},
	}
}
