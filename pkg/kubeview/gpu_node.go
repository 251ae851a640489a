package kubeview

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
)

// maxNodeGPUs is how many GPUs of one node are told apart.
const maxNodeGPUs = 64

// maxReplicas is into how many time slices a GPU may be cut.
const maxReplicas = 1024

// GPUNode is what a Node object says of its GPUs, before any pod is counted. It is immutable.
type GPUNode struct {
	// Node is the object it was read from.
	Node *v1.Node
	// empty is the inventory of the node without pods.
	empty gpu.Inventory
	// allocatable is how many units of the GPU resource the kubelet offers.
	allocatable int64
	// inUse are the device indices that an agent saw in use; nil when nobody looks.
	inUse []int
	// uuids of the devices in index order, where the node lists them.
	uuids []string
	// Clique is the NVLink domain across nodes; empty when there is none.
	Clique string
}

// Model is the product of the node's GPUs; empty without GPUs or when unknown.
func (g *GPUNode) Model() string { return g.empty.Model }

// GPUs is how many physical GPUs the node has.
func (g *GPUNode) GPUs() int { return len(g.empty.Devices) }

// MemMiB is the memory of each GPU; 0 when unknown.
func (g *GPUNode) MemMiB() int { return g.empty.MemMiB }

// Empty is the inventory of the node without pods. It must not be changed.
func (g *GPUNode) Empty() *gpu.Inventory { return &g.empty }

// UUIDs are the devices' UUIDs in index order, nil when the node does not list them.
func (g *GPUNode) UUIDs() []string { return g.uuids }

// ReadGPUNode reads the GPUs of a node. Values that cannot be used are treated as absent and returned.
func (k *GPUKeys) ReadGPUNode(node *v1.Node) (*GPUNode, []*BadValue) {
	g := &GPUNode{Node: node}
	b := gpuNodeReader{keys: k, node: node}
	inv := &g.empty
	inv.Replicas = 1
	inv.CPUMilli = node.Status.Allocatable.Cpu().MilliValue()
	inv.Leaving = leavingTaint(node)
	for name, q := range node.Status.Allocatable {
		if k.isSlice(string(name)) && q.Sign() > 0 {
			inv.Slices = append(inv.Slices, gpu.SliceCount{Resource: string(name), Count: clampCount(q), Milli: sliceMilli(string(name))})
		}
	}
	slices.SortFunc(inv.Slices, func(a, b gpu.SliceCount) int { return strings.Compare(a.Resource, b.Resource) })
	inv.Resource, g.allocatable, inv.SharedResource = k.offered(node)

	devices, listed := b.registered(), b.published(g.allocatable)
	count := max(b.number(k.CountLabels, maxNodeGPUs), publishedCount(listed))
	inv.Mode = b.mode(len(devices) > 0)
	inv.Registered = len(devices) > 0
	inv.Agent = inv.Registered || node.Labels[GPUAgentKey] != ""
	if inv.Resource == "" && count == 0 && len(devices) == 0 && len(inv.Slices) == 0 && inv.Mode != gpu.ModeDRA {
		return g, b.bad
	}
	if inv.Resource == "" && len(inv.Slices) == 0 {
		inv.Resource = k.Resources[0]
	}
	if inv.Model = b.model(); inv.Model == "" && len(listed) > 0 {
		inv.Model = gpu.BaseModel(listed[0].Model)
	}
	product, _ := gpu.LookupProduct(inv.Model)
	if inv.MemMiB = b.memory(); inv.MemMiB == 0 && len(listed) > 0 {
		inv.MemMiB = listed[0].MemMiB
	}
	if inv.MemMiB == 0 && inv.Model != "" {
		inv.MemMiB = product.MemMiB
	}
	if inv.Generation = b.generation(); inv.Generation == 0 {
		inv.Generation = product.Generation
	}
	if inv.Mode == gpu.ModeDevicePlugin {
		inv.Replicas = b.replicas(count, g.allocatable, listed)
	}
	switch {
	case len(devices) > 0:
		// HAMi's device plugin counts by what it registers, which may be more than there is.
		if registered := leastMemory(devices); registered > 0 {
			inv.MemMiB = registered
		}
		inv.Devices = gpu.NewDevices(len(devices), inv.MemMiB)
		for i, d := range devices {
			inv.Devices[i].Unhealthy = !d.healthy
			g.uuids = append(g.uuids, d.uuid)
		}
	case inv.Mode != gpu.ModeDRA:
		offered := int(min(g.allocatable/int64(inv.Replicas), maxNodeGPUs))
		inv.Devices = gpu.NewDevices(max(count, offered), inv.MemMiB)
		if len(inv.Slices) > 0 && offered == 0 {
			inv.Devices = nil // GPUs that are cut into slices are not given out whole
		}
		markAbsent(inv.Devices, listed, offered)
		if len(listed) == len(inv.Devices) {
			for _, d := range listed {
				g.uuids = append(g.uuids, d.UUID)
			}
		}
	}
	b.links(inv, product)
	g.inUse = b.inUse(len(inv.Devices))
	inv.IndexKnown = inv.Mode == gpu.ModeShared || g.inUse != nil
	g.Clique = b.first(k.CliqueLabels)
	return g, b.bad
}

// offered is the GPU resource of which the kubelet offers units, and how many.
func (k *GPUKeys) offered(node *v1.Node) (name string, units int64, shared bool) {
	for _, n := range k.Resources {
		if q := quantity(node.Status.Allocatable, n); q > 0 {
			return n, q, false
		}
	}
	for _, n := range k.SharedResources {
		if q := quantity(node.Status.Allocatable, n); q > 0 {
			return n, q, true
		}
	}
	return "", 0, false
}

func leavingTaint(node *v1.Node) string {
	for _, t := range node.Spec.Taints {
		if slices.Contains(leavingTaints, t.Key) {
			return t.Key
		}
	}
	return ""
}

// gpuNodeReader reads one node and collects what it cannot use.
type gpuNodeReader struct {
	keys *GPUKeys
	node *v1.Node
	bad  []*BadValue
}

func (b *gpuNodeReader) reject(kind, key, value, allowed string) {
	b.bad = append(b.bad, &BadValue{Object: "node", Kind: kind, Key: key, Value: value, Allowed: allowed})
}

// first is the value of the first label of the list that the node carries.
func (b *gpuNodeReader) first(keys []string) string {
	for _, key := range keys {
		if v := b.node.Labels[key]; v != "" {
			return v
		}
	}
	return ""
}

// number is the first label of the list with a usable number, 0 without one.
func (b *gpuNodeReader) number(keys []string, high int) int {
	for _, key := range keys {
		value, ok := b.node.Labels[key]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(value)
		if err == nil && n >= 0 && n <= high {
			return n
		}
		b.reject("label", key, value, fmt.Sprintf("a whole number from 0 to %d", high))
	}
	return 0
}

func (b *gpuNodeReader) mode(registered bool) gpu.Mode {
	value, ok := b.node.Labels[GPUModeKey]
	switch value {
	case "device-plugin":
		return gpu.ModeDevicePlugin
	case "shared":
		return gpu.ModeShared
	case "dra":
		return gpu.ModeDRA
	}
	if ok {
		b.reject("label", GPUModeKey, value, "device-plugin, shared or dra")
	}
	if registered {
		return gpu.ModeShared
	}
	return gpu.ModeDevicePlugin
}

func (b *gpuNodeReader) model() string {
	return gpu.BaseModel(b.first(b.keys.ProductLabels))
}

// memory is the memory of each GPU in MiB.
func (b *gpuNodeReader) memory() int {
	for _, key := range b.keys.MemoryLabels {
		value, ok := b.node.Labels[key]
		if !ok {
			continue
		}
		if mib, ok := parseMemoryMiB(value, strings.HasSuffix(key, "-gb")); ok {
			return mib
		}
		b.reject("label", key, value, "the memory of one GPU: a whole number of MiB (of GiB under a key that ends in -gb), or with a unit M, Mi, G or Gi")
	}
	return 0
}

// parseMemoryMiB reads a number of MiB, of GiB, or with a unit. Decimal units are read as binary ones: makers label
// a GPU of 192 GiB "192G".
func parseMemoryMiB(value string, inGiB bool) (int, bool) {
	shift := 0
	if inGiB {
		shift = 10
	}
	digits := strings.TrimSuffix(strings.TrimSuffix(value, "B"), "i")
	if cut, ok := strings.CutSuffix(digits, "G"); ok {
		digits, shift = cut, 10
	} else if cut, ok := strings.CutSuffix(digits, "M"); ok {
		digits, shift = cut, 0
	} else if digits != value {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 || n<<shift > 1<<30 {
		return 0, false
	}
	return int(n << shift), true
}

// generations are the compute capabilities behind the names that labels use: NVIDIA's families, and the models of the
// published examples.
var generations = map[string]int{
	"kepler": 35, "maxwell": 50, "pascal": 60, "volta": 70, "turing": 75, "ampere": 80, "ada-lovelace": 89,
	"hopper": 90, "blackwell": 100,
	"p100": 60, "v100": 70, "t4": 75, "a100": 80, "a10": 86, "l4": 89, "l40s": 89, "h100": 90, "h200": 90, "b200": 100,
}

// generation is the compute capability times ten.
func (b *gpuNodeReader) generation() int {
	for _, key := range b.keys.GenerationLabels {
		value, ok := b.node.Labels[key]
		if !ok {
			continue
		}
		if g, ok := generations[strings.ToLower(value)]; ok {
			return g
		}
		if f, err := strconv.ParseFloat(value, 64); err == nil && f >= 1 && f < 100 {
			g := int(math.Round(f * 10))
			if minor, err := strconv.Atoi(b.node.Labels[computeMinorLabel]); key == computeMajorLabel && err == nil && minor >= 0 && minor < 10 {
				g += minor
			}
			return g
		}
		b.reject("label", key, value, "a compute capability such as 9 or 9.0, or a family such as hopper")
	}
	return 0
}

// replicas is into how many time slices each GPU is cut, 1 for none.
func (b *gpuNodeReader) replicas(count int, allocatable int64, listed []PublishedGPU) int {
	strategy := b.node.Labels[sharingStrategyLabel]
	replicas := b.number(b.keys.ReplicasLabels, maxReplicas)
	switch {
	case strategy == "none":
		return 1
	case replicas > 1:
		return replicas
	case strategy != "" && count > 0 && allocatable > int64(count):
		return int(min(allocatable/int64(count), maxReplicas))
	default:
		return publishedReplicas(listed)
	}
}
