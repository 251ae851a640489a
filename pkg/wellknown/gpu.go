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
	// GPUAgentKey is the label of a node that names the agent that enforces the devices and shares of pods there. HAMi's
	// device plugin needs none: it registers itself.
	GPUAgentKey = "berth.dev/gpu-agent"
	// GPUAssignedKey is the annotation of a pod with its devices, as JSON. The scheduler writes it before it binds the
	// pod, for other programs; it reads the condition GPUsAssigned itself.
	GPUAssignedKey = "berth.dev/gpu-assigned"
	// GPULinksKey is the annotation of a node with the links among its GPUs, as JSON.
	GPULinksKey = "berth.dev/gpu-links"
)

// GPUNames are the resource names and node label keys in which GPUs are described, as they stand in the args of
// plugins. Of each list the first that an object carries counts.
//
// +kubebuilder:object:generate=true
type GPUNames struct {
	// Extended resources whose unit is a GPU. At least one is required; default `nvidia.com/gpu`, `amd.com/gpu`,
	// `gpu.intel.com/xe`, `gpu.intel.com/i915`.
	Resources []string `json:"resources,omitempty"`
	// Extended resources whose unit is a time slice of a GPU. Default `nvidia.com/gpu.shared`.
	SharedResources []string `json:"sharedResources,omitempty"`
	// Prefixes of extended resources whose unit is a hardware slice of a GPU. Default `nvidia.com/mig-`.
	SlicePrefixes []string `json:"slicePrefixes,omitempty"`
	// Drivers of dynamic resource allocation whose devices are GPUs. A claim is one for GPUs if such a device would be
	// allocated for it. Default `gpu.nvidia.com`, `gpu.amd.com`, `gpu.intel.com`.
	Drivers []string `json:"deviceDrivers,omitempty"`

	// Keys of node labels that describe GPUs.
	GPULabels `json:"labels,omitempty"`
}

// GPULabels are the keys of node labels that describe GPUs: of each list, the first that a node has counts. The labels
// of providers count after them. An empty list switches its labels off.
//
// +kubebuilder:object:generate=true
type GPULabels struct {
	// Labels with the model. Default `nvidia.com/gpu.product`, `amd.com/gpu.product-name`, `gpu.intel.com/product`,
	// `gpu-type`.
	ProductLabels []string `json:"product,omitempty"`
	// Labels with the memory per GPU: a plain number is MiB, or GiB where the key ends in `-gb`; units G, Gi, M and Mi
	// are understood. Default `nvidia.com/gpu.memory`, `amd.com/gpu.vram`, `gpu.intel.com/memory.max`, `gpu-memory-gb`.
	MemoryLabels []string `json:"memory,omitempty"`
	// Labels with the number of physical GPUs. Default `nvidia.com/gpu.count`.
	CountLabels []string `json:"count,omitempty"`
	// Labels with the number of time slices into which each GPU is cut. Default `nvidia.com/gpu.replicas`.
	ReplicasLabels []string `json:"replicas,omitempty"`
	// Labels with a compute capability (`9.0`), its major version (`9`), a family (`hopper`) or the name of a
	// well-known model (`h100`). Default `nvidia.com/gpu.compute.major`, `nvidia.com/gpu.family`, `gpu-generation`.
	GenerationLabels []string `json:"generation,omitempty"`
	// Labels that say `nvlink` where all GPUs of the node are connected by it. Default `gpu-interconnect`.
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
