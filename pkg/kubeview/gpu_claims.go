package kubeview

import (
	"context"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
)

// Attributes and capacities by which drivers describe GPUs, without the driver's domain.
const (
	attributeProduct      = "productName"
	attributeArchitecture = "architecture"
	attributeCapability   = "cudaComputeCapability"
	attributePCIeRoot     = "resource.kubernetes.io/pcieRoot"
	capacityMemory        = "memory"
)

// GPUClaims reads GPUs that are served by dynamic resource allocation. It keeps what it read of a slice until the slice
// or the class changes. It is safe for concurrent use.
type GPUClaims struct {
	compiled *cel.Cache

	mu     sync.Mutex
	slices map[sliceKey]readSlice
}

type sliceKey struct {
	slice types.UID
	class string
}

type readSlice struct {
	sliceVersion, classVersion string
	devices                    []claimableGPU
}

// claimableGPU is one device of a slice that a class selects.
type claimableGPU struct {
	id         structured.DeviceID
	product    string
	generation int
	memMiB     int
	pcieRoot   string
	tainted    bool
}

// NewGPUClaims returns a reader that has read nothing.
func NewGPUClaims() *GPUClaims {
	return &GPUClaims{compiled: cel.NewCache(16, cel.Features{}), slices: map[sliceKey]readSlice{}}
}

// ClaimedGPUs finds the device class of which the pod claims GPUs and how many, in claims of its own that are not
// allocated yet. A class counts when it stands in for one of the GPU resources. Claims that leave the driver a choice
// between requests, or ask for all devices, are left to the allocator.
func (k *GPUKeys) ClaimedGPUs(pod *v1.Pod, dra fwk.SharedDRAManager) (class *resourcev1.DeviceClass, count int) {
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim, err := dra.ResourceClaims().Get(pod.Namespace, *name)
		if err != nil || claim.Status.Allocation != nil {
			continue
		}
		for _, r := range claim.Spec.Devices.Requests {
			if r.Exactly == nil || r.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll {
				continue
			}
			c, err := dra.DeviceClasses().Get(r.Exactly.DeviceClassName)
			if err != nil || c.Spec.ExtendedResourceName == nil || !k.isGPU(*c.Spec.ExtendedResourceName) || class != nil && class.Name != c.Name {
				continue
			}
			class = c
			count += int(min(max(r.Exactly.Count, 1), maxGPUs))
		}
	}
	return class, count
}

// ClaimsNamed reports whether all claims of the pod exist by name. Those from a template are made after the pod.
func ClaimsNamed(pod *v1.Pod) bool {
	for i := range pod.Spec.ResourceClaims {
		if _, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err != nil {
			return false
		}
	}
	return true
}

// Inventories counts, node by node, the devices that the class selects. A device that is allocated is taken, one with a
// taint that keeps pods off is unhealthy. Devices of slices that belong to no single node are not counted; elsewhere
// reports that there are some.
func (g *GPUClaims) Inventories(ctx context.Context, dra fwk.SharedDRAManager, class *resourcev1.DeviceClass) (byNode map[string]*gpu.Inventory, elsewhere bool, err error) {
	slices, err := dra.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return nil, false, fmt.Errorf("listing resource slices: %w", err)
	}
	state, err := dra.ResourceClaims().GatherAllocatedState()
	if err != nil {
		return nil, false, fmt.Errorf("reading allocated devices: %w", err)
	}
	newest := map[string]int64{}
	for _, s := range slices {
		pool := s.Spec.Driver + "/" + s.Spec.Pool.Name
		newest[pool] = max(newest[pool], s.Spec.Pool.Generation)
	}
	devices := map[string][]claimableGPU{}
	for _, s := range slices {
		if s.Spec.Pool.Generation < newest[s.Spec.Driver+"/"+s.Spec.Pool.Name] {
			continue
		}
		selected := g.read(ctx, s, class)
		if s.Spec.NodeName == nil || *s.Spec.NodeName == "" {
			elsewhere = elsewhere || len(selected) > 0
			continue
		}
		devices[*s.Spec.NodeName] = append(devices[*s.Spec.NodeName], selected...)
	}
	byNode = make(map[string]*gpu.Inventory, len(devices))
	for node, list := range devices {
		if len(list) > 0 {
			byNode[node] = claimInventory(list, state.AllocatedDevices)
		}
	}
	return byNode, elsewhere, nil
}

// read returns the devices of a slice that the class selects.
func (g *GPUClaims) read(ctx context.Context, s *resourcev1.ResourceSlice, class *resourcev1.DeviceClass) []claimableGPU {
	key := sliceKey{s.UID, class.Name}
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.slices[key]
	// Taint rules are applied to copies of a slice under the same version, so that taints are read anew.
	if !ok || known.sliceVersion != s.ResourceVersion || known.classVersion != class.ResourceVersion {
		known = readSlice{s.ResourceVersion, class.ResourceVersion, nil}
		for i := range s.Spec.Devices {
			if g.selects(ctx, class, s.Spec.Driver, &s.Spec.Devices[i]) {
				known.devices = append(known.devices, readClaimable(s, &s.Spec.Devices[i]))
			}
		}
		if len(g.slices) > 1<<16 {
			clear(g.slices) // slices that are gone are not reported; this bounds what they leave behind
		}
		g.slices[key] = known
	}
	if len(known.devices) == 0 {
		return nil
	}
	tainted := sets.New[string]()
	for i := range s.Spec.Devices {
		for _, t := range s.Spec.Devices[i].Taints {
			if t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute {
				tainted.Insert(s.Spec.Devices[i].Name)
			}
		}
	}
	out := append([]claimableGPU(nil), known.devices...)
	for i := range out {
		out[i].tainted = tainted.Has(out[i].id.Device.String())
	}
	return out
}

// selects evaluates the class's selectors. An expression that fails selects nothing, as for the allocator.
func (g *GPUClaims) selects(ctx context.Context, class *resourcev1.DeviceClass, driver string, d *resourcev1.Device) bool {
	for _, s := range class.Spec.Selectors {
		if s.CEL == nil {
			continue
		}
		program := g.compiled.GetOrCompile(s.CEL.Expression)
		if program.Error != nil {
			return false
		}
		matches, _, err := program.DeviceMatches(ctx, cel.Device{
			Driver: driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity,
		})
		if err != nil || !matches {
			return false
		}
	}
	return true
}

func readClaimable(s *resourcev1.ResourceSlice, d *resourcev1.Device) claimableGPU {
	out := claimableGPU{id: structured.MakeDeviceID(s.Spec.Driver, s.Spec.Pool.Name, d.Name)}
	text := func(name string) string {
		for key, a := range d.Attributes {
			if bare := strings.TrimPrefix(string(key), s.Spec.Driver+"/"); bare == name {
				switch {
				case a.StringValue != nil:
					return *a.StringValue
				case a.VersionValue != nil:
					return *a.VersionValue
				}
			}
		}
		return ""
	}
	out.product = gpu.BaseModel(strings.ReplaceAll(text(attributeProduct), " ", "-"))
	out.pcieRoot = text(attributePCIeRoot)
	product, _ := gpu.LookupProduct(out.product)
	out.memMiB, out.generation = product.MemMiB, product.Generation
	for key, c := range d.Capacity {
		if strings.TrimPrefix(string(key), s.Spec.Driver+"/") == capacityMemory && c.Value.Sign() > 0 {
			out.memMiB = int(min(c.Value.Value()>>20, 1<<30))
		}
	}
	var major, minor int
	if n, _ := fmt.Sscanf(text(attributeCapability), "%d.%d", &major, &minor); n == 2 && major > 0 && minor >= 0 && minor < 10 {
		out.generation = major*10 + minor
	} else if g, ok := generations[strings.ToLower(strings.ReplaceAll(text(attributeArchitecture), " ", "-"))]; ok {
		out.generation = g
	}
	return out
}

// claimInventory sums up one node's devices. Where they differ, the least memory and no model counts: the allocator
// takes the first that the class selects, not the one that the pod's annotations would want.
func claimInventory(list []claimableGPU, allocated sets.Set[structured.DeviceID]) *gpu.Inventory {
	first := list[0]
	inv := &gpu.Inventory{
		Mode: gpu.ModeDRA, Replicas: 1, IndexKnown: true,
		Model: first.product, MemMiB: first.memMiB, Generation: first.generation,
	}
	list = list[:min(len(list), maxNodeGPUs)]
	for _, d := range list {
		inv.MemMiB, inv.Generation = min(inv.MemMiB, d.memMiB), min(inv.Generation, d.generation)
		if d.product != first.product {
			inv.Model = ""
		}
	}
	inv.Devices = gpu.NewDevices(len(list), inv.MemMiB)
	for i, d := range list {
		inv.Devices[i].Unhealthy = d.tainted
		if allocated.Has(d.id) {
			inv.Occupy([]int{i}, gpu.Share{Milli: gpu.WholeMilli, MemMiB: inv.MemMiB})
		}
	}
	inv.Links = claimLinks(list, inv.Model)
	return inv
}

// claimLinks is a mesh where the product has one, else PCIe switches by the devices' root complexes.
func claimLinks(list []claimableGPU, model string) *gpu.Links {
	if len(list) < 2 {
		return nil
	}
	if product, ok := gpu.LookupProduct(model); ok && product.NVLinkMesh {
		return gpu.Mesh(len(list))
	}
	near, err := gpu.ParseLink("PIX")
	if err != nil {
		return nil
	}
	builder, known := gpu.NewLinks(len(list)), false
	for i := range list {
		for j := range i {
			if list[i].pcieRoot == "" || list[i].pcieRoot != list[j].pcieRoot {
				continue
			}
			if builder.Connect(i, j, near) == nil {
				known = true
			}
		}
	}
	if !known {
		return nil
	}
	return builder.Build()
}

// ClaimInventory completes a node's inventory of claimable devices with what the NodeInfo knows: free CPU, and pods that
// ask for the resource but whose devices are not allocated, because they are only simulated.
func ClaimInventory(base *gpu.Inventory, info fwk.NodeInfo, resource string) *gpu.Inventory {
	inv := base.Clone()
	inv.Resource = resource
	inv.CPUMilli = info.GetAllocatable().GetMilliCPU()
	inv.FreeCPUMilli = inv.CPUMilli - info.GetRequested().GetMilliCPU()
	inv.Leaving = leavingTaint(info.Node())
	taken := 0
	for _, d := range inv.Devices {
		if d.FreeMilli < gpu.WholeMilli {
			taken++
		}
	}
	requested := info.GetRequested().GetScalarResources()[v1.ResourceName(resource)]
	occupyWhole(inv, nil, int(min(requested, maxNodeGPUs))-taken)
	return inv
}
