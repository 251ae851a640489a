package gpuview

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/gpu/catalog"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// ownPodKeys are this project's annotations by which a pod restricts the choice of GPUs.
var ownPodKeys = []string{wellknown.GPUMemoryMinKey, wellknown.GPUModelsKey, wellknown.GPUInterconnectKey,
	wellknown.GPUSharingKey}

// WorkloadTypeLabel is the label by which published examples sort pods into CPU-intensive and GPU-intensive.
const WorkloadTypeLabel = "workload-type"

// Keys are the resource names and node label keys that describe GPUs, and whether annotations of pods are trusted.
type Keys struct {
	wellknown.GPUNames
	// TrustAnnotations makes the annotations of pods count that this scheduler did not assign, because tenants cannot
	// write them.
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
	return slices.ContainsFunc(k.SlicePrefixes, func(prefix string) bool { return strings.HasPrefix(resource, prefix) })
}

// ReadsResource reports whether pods ask for GPUs, or parts of them, by the extended resource.
func (k *Keys) ReadsResource(name string) bool { return k.isGPU(name) || isHAMi(name) }

// MakesGPUs reports whether a resource or label is in the domain of a maker of GPUs.
func (k *Keys) MakesGPUs(key string) bool { return indexOfMaker(k.Resources, key) >= 0 }

// OfMaker is the first of the resources or labels that is in the same domain as the key, else the first of all.
func OfMaker(names []string, key string) string { return names[max(0, indexOfMaker(names, key))] }

func indexOfMaker(names []string, key string) int {
	return slices.IndexFunc(names, func(name string) bool { return maker(name) == maker(key) })
}

// PodResources are the extended resources by which pods ask for GPUs, or parts of them, apart from hardware slices.
func (k *Keys) PodResources() []string {
	return slices.Concat(k.Resources, k.SharedResources, shareResources)
}

// DescribingLabels are the labels of makers that describe a node's GPUs.
func (k *Keys) DescribingLabels() []string {
	return slices.DeleteFunc(k.labels(), func(key string) bool {
		return !strings.Contains(key, "/") || slices.Contains(k.InterconnectLabels, key)
	})
}

// ReadsLabel reports whether the label is one that describes a node's GPUs.
func (k *Keys) ReadsLabel(key string) bool { return slices.Contains(k.labels(), key) }

func (k *Keys) labels() []string {
	labels := slices.Concat(k.ProductLabels, k.MemoryLabels, k.CountLabels, k.ReplicasLabels, k.GenerationLabels,
		k.InterconnectLabels, []string{sharingStrategyLabel})
	if slices.Contains(k.GenerationLabels, computeMajorLabel) {
		labels = append(labels, computeMinorLabel)
	}
	return labels
}

// ProfileKeys are the names of GPUs in all profiles of one scheduler. It is safe for concurrent use.
type ProfileKeys struct {
	mu   sync.Mutex
	keys []*Keys
}

// ProfileKeysOf returns the value that the scheduler's profiles share.
func ProfileKeysOf(factory kubeinformers.SharedInformerFactory) *ProfileKeys {
	n, _ := informers.Shared(factory, func() (*ProfileKeys, error) { return &ProfileKeys{}, nil })
	return n
}

// Add adds the names of a profile. It has to be called while the profiles are made.
func (n *ProfileKeys) Add(keys *Keys) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.ContainsFunc(n.keys, func(known *Keys) bool { return reflect.DeepEqual(known, keys) }) {
		n.keys = append(n.keys, keys)
	}
}

// All are the names of all profiles, in the order of the profiles; the defaults if no profile has any. The caller must
// not change the list.
func (n *ProfileKeys) All() []*Keys {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.keys) == 0 {
		defaults := DefaultKeys()
		return []*Keys{&defaults}
	}
	return n.keys
}
