package claimview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/catalog"
	"berth.dev/berth/pkg/gpu/gpuview"
)

// Attributes and capacities by which drivers describe GPUs, without the driver's domain.
const (
	attributeProduct      = "productName"
	attributeArchitecture = "architecture"
	attributeCapability   = "cudaComputeCapability"
	attributeUUID         = "uuid"
	attributeParentUUID   = "parentUUID"
	attributeProfile      = "profile"
	attributeType         = "type"
	typeMIG               = "mig"
	attributePCIeRoot     = "resource.kubernetes.io/pcieRoot"
	amountMemory          = "memory"
)

// claimGPU is one physical GPU as slices describe it.
type claimGPU struct {
	product            string
	generation, memMiB int
	uuid, pcieRoot     string
	// milli is the sum of the GPU's hardware slices.
	milli int
	// largest is the part of the largest device, from which the other fields are read.
	largest int
	tainted bool
}

// claimDevice is what can be allocated: a GPU, or a part of one or more.
type claimDevice struct {
	id     structured.DeviceID
	kind   kind
	source sourceDevice
	parts  []claimPart
	// slice names a hardware slice whose GPU is unknown, by driver and profile. It has one part, without a GPU.
	slice string
	// capacity is that of a device that several claims may share, nil for other devices.
	capacity amounts
	tainted  bool
}

// size is the sum of the device's parts, in milli-GPU.
func (d *claimDevice) size() int {
	sum := 0
	for _, p := range d.parts {
		sum += p.milli
	}
	return sum
}

// claimPart is the part of a GPU that a device is. gpu is -1 where the GPU is unknown.
type claimPart struct {
	gpu           int
	milli, memMiB int
}

// Node is what slices say about one node's GPUs. It is immutable.
type Node struct {
	name string
	// sources are the slices of all pools with devices of the node.
	sources []*resourcev1.ResourceSlice
	gpus    []claimGPU
	devices []claimDevice
	byID    map[structured.DeviceID]int
	// empty is the inventory while nothing is allocated.
	empty gpu.Inventory
	uuids []string
}

// sourceDevice is a device with the slice that it is in.
type sourceDevice struct {
	slice  *resourcev1.ResourceSlice
	device *resourcev1.Device
}

func (d sourceDevice) id() structured.DeviceID {
	return structured.MakeDeviceID(d.slice.Spec.Driver, d.slice.Spec.Pool.Name, d.device.Name)
}

// counterKey names a set of counters.
type counterKey struct{ driver, pool, set string }

// deviceNodeReader puts the devices of one node together.
type deviceNodeReader struct {
	node     *Node
	counters map[counterKey]amounts
	// byKey are the GPUs by what their devices have in common.
	byKey map[string]int
}

// readNode reads the devices of one node. GPUs beyond gpuview.MaxGPUs are left out.
func readNode(name string, sources []*resourcev1.ResourceSlice) *Node {
	r := &deviceNodeReader{
		node:     &Node{name: name, sources: sources, byID: map[structured.DeviceID]int{}},
		counters: map[counterKey]amounts{}, byKey: map[string]int{},
	}
	var devices []sourceDevice
	for _, s := range sources {
		for i := range s.Spec.SharedCounters {
			set := &s.Spec.SharedCounters[i]
			r.counters[counterKey{s.Spec.Driver, s.Spec.Pool.Name, set.Name}] = countersOf(set.Counters)
		}
		for i := range s.Spec.Devices {
			if nodeOf(s, &s.Spec.Devices[i]) == name {
				devices = append(devices, sourceDevice{s, &s.Spec.Devices[i]})
			}
		}
	}
	slices.SortFunc(devices, func(a, b sourceDevice) int {
		return cmp.Or(strings.Compare(a.slice.Spec.Driver, b.slice.Spec.Driver),
			strings.Compare(a.slice.Spec.Pool.Name, b.slice.Spec.Pool.Name),
			cmp.Compare(len(a.device.Name), len(b.device.Name)), strings.Compare(a.device.Name, b.device.Name))
	})
	for _, d := range devices {
		r.add(d)
	}
	r.finish()
	return r.node
}

// add reads one device.
func (r *deviceNodeReader) add(d sourceDevice) {
	capacity := d.capacity()
	out := claimDevice{id: d.id(), kind: kindOf(d), source: d, tainted: tainted(d.device)}
	if ptr.Deref(d.device.AllowMultipleAllocations, false) {
		out.capacity = capacity
	}
	seen := claimGPU{tainted: out.tainted, uuid: d.text(attributeUUID), pcieRoot: d.text(attributePCIeRoot)}
	seen.product, seen.generation = productOf(d)
	product, _ := catalog.Lookup(seen.product)
	seen.memMiB = product.MemMiB
	switch {
	case len(d.device.ConsumesCounters) > 0:
		r.addPartition(&out, seen, capacity.memMiB())
	case d.text(attributeProfile) != "" || d.text(attributeType) == typeMIG:
		r.addSlice(&out, seen, capacity.memMiB())
	default:
		key := fmt.Sprintf("device %q %q", d.slice.Spec.Pool.Name, d.device.Name)
		if seen.uuid != "" {
			key = "uuid " + seen.uuid
		}
		seen.memMiB = cmp.Or(capacity.memMiB(), seen.memMiB)
		r.join(&out, key, &seen, claimPart{milli: gpu.WholeMilli, memMiB: seen.memMiB})
	}
	if len(out.parts) > 0 {
		r.node.byID[out.id] = len(r.node.devices)
		r.node.devices = append(r.node.devices, out)
	}
}

// addPartition reads a device that takes parts of GPUs by counters. Sets of counters that do not exist are left out:
// the allocator gives nothing out of them.
func (r *deviceNodeReader) addPartition(out *claimDevice, seen claimGPU, memMiB int) {
	spec := &out.source.slice.Spec
	for _, c := range out.source.device.ConsumesCounters {
		total := r.counters[counterKey{spec.Driver, spec.Pool.Name, c.CounterSet}]
		if len(total) == 0 {
			continue
		}
		used, of := countersOf(c.Counters), seen
		of.memMiB = cmp.Or(total.memMiB(), max(memMiB, seen.memMiB))
		part := claimPart{milli: used.milliOf(total), memMiB: cmp.Or(used.memMiB(), min(memMiB, of.memMiB))}
		r.join(out, fmt.Sprintf("counters %q %q", spec.Pool.Name, c.CounterSet), &of, part)
	}
}

// addSlice reads a hardware slice, with or without the UUID of its GPU.
func (r *deviceNodeReader) addSlice(out *claimDevice, seen claimGPU, memMiB int) {
	profile := cmp.Or(out.source.text(attributeProfile), typeMIG)
	geometry, _ := gpu.ParseProfile(profile, seen.product, seen.memMiB)
	part := claimPart{gpu: -1, milli: geometry.Milli(), memMiB: memMiB}
	if seen.uuid = out.source.text(attributeParentUUID); seen.uuid == "" {
		out.slice, out.parts = out.source.slice.Spec.Driver+"/"+profile, []claimPart{part}
	} else if r.join(out, "uuid "+seen.uuid, &seen, part) {
		r.node.gpus[out.parts[0].gpu].milli += part.milli
	}
}

// join makes the device a part of the GPU with that key. It reports false if there are too many GPUs.
func (r *deviceNodeReader) join(d *claimDevice, key string, seen *claimGPU, part claimPart) bool {
	i, known := r.byKey[key]
	if !known {
		if len(r.node.gpus) == gpuview.MaxGPUs {
			return false
		}
		i = len(r.node.gpus)
		r.byKey[key] = i
		r.node.gpus = append(r.node.gpus, claimGPU{})
	}
	if g := &r.node.gpus[i]; part.milli > g.largest {
		// The largest device is the GPU itself, or closest to it.
		milli := g.milli
		*g = *seen
		g.milli, g.largest = milli, part.milli
	}
	part.gpu = i
	d.parts = append(d.parts, part)
	return true
}

// finish sums up the GPUs. If they differ, the least memory counts, and the model is empty.
func (r *deviceNodeReader) finish() {
	n := r.node
	n.empty = gpu.Inventory{Mode: gpu.ModeDRA, Replicas: 1, IndexKnown: true}
	cut := map[string]*gpu.SliceCount{}
	for i := range n.devices {
		if d := &n.devices[i]; d.slice != "" && !d.tainted {
			if cut[d.slice] == nil {
				cut[d.slice] = &gpu.SliceCount{Resource: d.slice, Milli: d.parts[0].milli}
			}
			cut[d.slice].Count++
			cut[d.slice].Total++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cut)) {
		n.empty.Slices = append(n.empty.Slices, *cut[name])
	}
	known := false
	for i := range n.gpus {
		g := &n.gpus[i]
		if i == 0 {
			n.empty.Model, n.empty.MemMiB, n.empty.Generation = g.product, g.memMiB, g.generation
		}
		n.empty.MemMiB, n.empty.Generation = min(n.empty.MemMiB, g.memMiB), min(n.empty.Generation, g.generation)
		if g.product != n.empty.Model {
			n.empty.Model = ""
		}
		d := gpu.Device{FreeMilli: gpu.WholeMilli, FreeMemMiB: g.memMiB, Unhealthy: g.tainted}
		if g.milli > 0 && g.largest < gpu.WholeMilli {
			d.FreeMilli = min(g.milli, gpu.WholeMilli)
		}
		n.empty.Devices = append(n.empty.Devices, d)
		n.uuids = append(n.uuids, g.uuid)
		known = known || g.uuid != ""
	}
	if !known {
		n.uuids = nil
	}
	n.empty.Links = claimLinks(n.gpus, n.empty.Model)
}

// tainted reports whether pods need a toleration for the device.
func tainted(d *resourcev1.Device) bool {
	return slices.ContainsFunc(d.Taints, func(t resourcev1.DeviceTaint) bool {
		return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
	})
}

// text is an attribute that is text, by its name without the driver's domain; empty without it.
func (d sourceDevice) text(name string) string {
	a, ok := d.device.Attributes[resourcev1.QualifiedName(name)]
	if !ok {
		a = d.device.Attributes[resourcev1.QualifiedName(d.slice.Spec.Driver+"/"+name)]
	}
	return cmp.Or(ptr.Deref(a.StringValue, ""), ptr.Deref(a.VersionValue, ""))
}

// productOf reads model and generation.
func productOf(d sourceDevice) (product string, generation int) {
	product = catalog.BaseModel(strings.ReplaceAll(d.text(attributeProduct), " ", "-"))
	known, _ := catalog.Lookup(product)
	generation = known.Generation
	var major, minor int
	if n, _ := fmt.Sscanf(d.text(attributeCapability), "%d.%d", &major, &minor); n == 2 && major > 0 && major < 100 &&
		minor >= 0 && minor < 10 {
		generation = major*10 + minor
	} else if g, ok := catalog.GenerationOf(strings.ReplaceAll(d.text(attributeArchitecture), " ", "-")); ok {
		generation = g
	}
	return product, generation
}

// claimLinks is a mesh where the product has one, else PCIe switches by the devices' root complexes.
func claimLinks(gpus []claimGPU, model string) *gpu.Links {
	if len(gpus) < 2 {
		return nil
	}
	if product, ok := catalog.Lookup(model); ok && product.NVLinkMesh {
		return gpu.Mesh(len(gpus))
	}
	if len(gpus) > gpu.MaxLinked {
		return nil
	}
	near, err := gpu.ParseLink("PIX")
	if err != nil {
		return nil
	}
	var pairs []gpu.Pair
	for i := range gpus {
		for j := range i {
			if gpus[i].pcieRoot != "" && gpus[i].pcieRoot == gpus[j].pcieRoot {
				pairs = append(pairs, gpu.Pair{A: i, B: j, Link: near})
			}
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	links, _ := gpu.NewLinks(len(gpus), pairs) // the indices exist
	return links
}
