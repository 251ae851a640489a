package claimview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

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
	// milli is how much of the GPU its devices are together, where it is cut for good.
	milli int
	// largest is the largest part that one device is; that device stands for the GPU.
	largest int
	tainted bool
}

// claimDevice is what can be allocated: a GPU, or a part of one or more.
type claimDevice struct {
	id     structured.DeviceID
	kind   kind
	source sourceDevice
	parts  []claimPart
	// slice names the kind of a hardware slice whose GPU is unknown; it has one part, without a GPU.
	slice string
	// capacity is that of a device that several claims may share, nil for other devices.
	capacity amounts
	tainted  bool
}

// size is how much of GPUs the device is together, in thousandths of a GPU.
func (d *claimDevice) size() int {
	sum := 0
	for _, p := range d.parts {
		sum += p.milli
	}
	return sum
}

// claimPart is how much of a GPU a device is.
type claimPart struct {
	gpu           int
	milli, memMiB int
}

// Node is what slices say of one node's GPUs. It is immutable.
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

// counterKey names a set of counters.
type counterKey struct{ driver, pool, set string }

// deviceNodeReader puts the devices of one node together.
type deviceNodeReader struct {
	node     *Node
	counters map[counterKey]amounts
	// byKey are the GPUs by what their devices have in common.
	byKey map[string]int
}

// readNode reads the devices of one node. Devices beyond those that can be told apart are left out.
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
	driver, pool := d.slice.Spec.Driver, d.slice.Spec.Pool.Name
	out := claimDevice{id: structured.MakeDeviceID(driver, pool, d.device.Name), kind: kindOf(d), source: d,
		tainted: tainted(d.device)}
	text := deviceText(driver, d.device)
	capacity := capacityOf(driver, d.device.Capacity)
	if a := d.device.AllowMultipleAllocations; a != nil && *a {
		out.capacity = capacity
	}
	seen := claimGPU{tainted: out.tainted}
	seen.product, seen.generation = productOf(text)
	product, _ := catalog.Lookup(seen.product)
	memMiB := capacity.memMiB()
	switch {
	case len(d.device.ConsumesCounters) > 0:
		for _, c := range d.device.ConsumesCounters {
			total := r.counters[counterKey{driver, pool, c.CounterSet}]
			if len(total) == 0 {
				continue // a set that is not there: the allocator gives nothing out of it
			}
			used := countersOf(c.Counters)
			part := claimPart{milli: used.milliOf(total), memMiB: used.memMiB()}
			seen.memMiB = total.memMiB()
			if seen.memMiB == 0 {
				seen.memMiB = max(memMiB, product.MemMiB)
			}
			if part.memMiB == 0 {
				part.memMiB = min(memMiB, seen.memMiB)
			}
			seen.uuid, seen.pcieRoot = text(attributeUUID), text(attributePCIeRoot)
			r.join(&out, fmt.Sprintf("counters %q %q", pool, c.CounterSet), &seen, part)
		}
	case text(attributeProfile) != "" || text(attributeType) == typeMIG:
		profile := cmp.Or(text(attributeProfile), typeMIG)
		geometry, _ := gpu.ParseProfile(profile, seen.product, product.MemMiB)
		part := claimPart{milli: geometry.Milli(), memMiB: memMiB}
		parent := text(attributeParentUUID)
		if parent == "" {
			out.slice, out.parts = driver+"/"+profile, []claimPart{{-1, part.milli, part.memMiB}}
			break
		}
		seen.uuid, seen.pcieRoot, seen.memMiB = parent, text(attributePCIeRoot), product.MemMiB
		if r.join(&out, "uuid "+parent, &seen, part) {
			r.node.gpus[out.parts[0].gpu].milli += part.milli
		}
	default:
		seen.uuid, seen.pcieRoot = text(attributeUUID), text(attributePCIeRoot)
		if seen.memMiB = memMiB; memMiB == 0 {
			seen.memMiB = product.MemMiB
		}
		key := fmt.Sprintf("device %q %q", pool, d.device.Name)
		if seen.uuid != "" {
			key = "uuid " + seen.uuid
		}
		r.join(&out, key, &seen, claimPart{milli: gpu.WholeMilli, memMiB: seen.memMiB})
	}
	if len(out.parts) > 0 {
		r.node.byID[out.id] = len(r.node.devices)
		r.node.devices = append(r.node.devices, out)
	}
}

// join makes the device a part of the GPU with that key. It reports false where there is no place for a further GPU.
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
		// The largest device is the GPU itself, or the most like it.
		milli := g.milli
		*g = *seen
		g.milli, g.largest = milli, part.milli
	}
	part.gpu = i
	d.parts = append(d.parts, part)
	return true
}

// finish sums the GPUs up. Where they differ, the least memory and no model counts.
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

// tainted reports whether a taint keeps pods off the device that do not tolerate it.
func tainted(d *resourcev1.Device) bool {
	return slices.ContainsFunc(d.Taints, func(t resourcev1.DeviceTaint) bool {
		return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
	})
}

// deviceText reads the device's attributes that are text, by their names without the driver's domain.
func deviceText(driver string, d *resourcev1.Device) func(name string) string {
	return func(name string) string {
		a, ok := d.Attributes[resourcev1.QualifiedName(name)]
		if !ok {
			a = d.Attributes[resourcev1.QualifiedName(driver+"/"+name)]
		}
		switch {
		case a.StringValue != nil:
			return *a.StringValue
		case a.VersionValue != nil:
			return *a.VersionValue
		}
		return ""
	}
}

// productOf reads model and generation.
func productOf(text func(string) string) (product string, generation int) {
	product = catalog.BaseModel(strings.ReplaceAll(text(attributeProduct), " ", "-"))
	known, _ := catalog.Lookup(product)
	generation = known.Generation
	var major, minor int
	if n, _ := fmt.Sscanf(text(attributeCapability), "%d.%d", &major, &minor); n == 2 && major > 0 && major < 100 &&
		minor >= 0 && minor < 10 {
		generation = major*10 + minor
	} else if g, ok := catalog.GenerationOf(strings.ReplaceAll(text(attributeArchitecture), " ", "-")); ok {
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
	builder, known := gpu.NewLinks(len(gpus)), false
	for i := range gpus {
		for j := range i {
			if gpus[i].pcieRoot != "" && gpus[i].pcieRoot == gpus[j].pcieRoot && builder.Connect(i, j, near) == nil {
				known = true
			}
		}
	}
	if !known {
		return nil
	}
	return builder.Build()
}
