package gpuview

import (
	"strings"

	"berth.dev/berth/pkg/gpu/catalog"
	"berth.dev/berth/pkg/wellknown"
)

// ownPodKeys are those by which a pod asks for some GPUs rather than others.
var ownPodKeys = []string{wellknown.GPUMemoryMinKey, wellknown.GPUModelsKey, wellknown.GPUInterconnectKey,
	wellknown.GPUSharingKey}

// WorkloadTypeLabel is the label by which published examples sort pods into CPU-intensive and GPU-intensive.
const WorkloadTypeLabel = "workload-type"

// Keys are the resource names and node label keys in which GPUs are described, and how far annotations of pods are
// believed.
type Keys struct {
	wellknown.GPUNames
	// TrustAnnotations reports that pods which this scheduler did not assign hold what their annotations say, because
	// tenants cannot write those.
	TrustAnnotations bool
}

// DefaultKeys have the names that the args have by default.
func DefaultKeys() Keys { return Keys{GPUNames: wellknown.DefaultGPUNames()} }

// nvidia is the domain of NVIDIA's resources and labels.
const nvidia = "nvidia.com"

// domains are those of each maker's resources and labels.
var domains = map[catalog.Maker]string{catalog.NVIDIA: nvidia, catalog.AMD: "amd.com", catalog.Intel: "gpu.intel.com"}

// sharingStrategyLabel is set by NVIDIA's device plugin where it hands out replicas: none, mps or time-slicing.
const sharingStrategyLabel = "nvidia.com/gpu.sharing-strategy"

// computeMinorLabel completes nvidia.com/gpu.compute.major.
const (
	computeMajorLabel = "nvidia.com/gpu.compute.major"
	computeMinorLabel = "nvidia.com/gpu.compute.minor"
)

func (k *Keys) isSlice(resource string) bool {
	for _, prefix := range k.SlicePrefixes {
		if strings.HasPrefix(resource, prefix) {
			return true
		}
	}
	return false
}
