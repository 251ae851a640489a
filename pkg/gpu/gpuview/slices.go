package gpuview

import (
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/catalog"
)

// maxSliced bounds the GPUs of a node that are cut into slices: a score places each slice on one of them.
const maxSliced = 1024

// migResources are the resources of hardware slices that belong to one of the node's GPU resources: the first of the
// same maker or, without one, the first of all.
func (b *nodeReader) migResources(i int) []gpu.SliceCount {
	var found []gpu.SliceCount
	for name, q := range b.node.Status.Allocatable {
		if !b.keys.isSlice(string(name)) || q.Sign() <= 0 {
			continue
		}
		owner := slices.IndexFunc(b.offers, func(o gpuOffer) bool { return maker(o.resource) == maker(string(name)) })
		if max(0, owner) == i {
			n := int(min(q.Value(), maxUnits))
			found = append(found, gpu.SliceCount{Resource: string(name), Count: n, Total: n})
		}
	}
	slices.SortFunc(found, func(a, b gpu.SliceCount) int { return strings.Compare(a.Resource, b.Resource) })
	return found
}

// partition is the profile into which all GPUs of the node are cut that are offered as GPUs; empty for none.
func (b *nodeReader) partition(p *provided) string {
	if profile := catalog.SliceProfile(b.first(b.keys.ProductLabels)); profile != "" {
		return profile
	}
	if b.first(b.keys.ProductLabels) != "" {
		return "" // feature discovery knows of none
	}
	return p.partition
}

// cutAll makes slices of what the node offers as GPUs. Feature discovery counts the slices there, providers the GPUs.
func (b *nodeReader) cutAll(inv *gpu.Inventory, partition string, replicas, count int, units int64) {
	profile, ok := gpu.ParseProfile(partition, inv.Model, inv.MemMiB)
	s := gpu.SliceCount{Resource: inv.Resource, Count: int(units), Total: int(units), Replicas: replicas,
		Milli: profile.Milli()}
	instances := ceil(units, replicas)
	labelled := catalog.SliceProfile(b.first(b.keys.ProductLabels)) != ""
	if labelled {
		instances, count = max(instances, count), 0
	}
	perGPU := gpu.WholeMilli / profile.Milli()
	if ok {
		perGPU = profile.MostPerGPU()
		if mib := b.memory(); labelled && mib > 0 {
			profile.MemMiB = mib
		}
		s.Profile = profile
	}
	inv.SlicedGPUs = min(maxSliced, max(count, ceil(int64(instances), perGPU)))
	inv.Slices = []gpu.SliceCount{s}
}

// cutSome makes slices of the resources that are named after profiles. All GPUs that are not offered whole are taken to
// be cut, and at least the number that the slices fill.
func (b *nodeReader) cutSome(inv *gpu.Inventory, found []gpu.SliceCount, count, whole int) {
	filled := map[int]int{} // memory slices, or slices of an unknown geometry, by how many of them a GPU has
	for i := range found {
		s := &found[i]
		base := strings.TrimSuffix(s.Resource, ".shared")
		s.Replicas = max(1, b.number([]string{base + ".replicas"}, maxUnits))
		profile, ok := gpu.ParseProfile(b.keys.profileIn(base), inv.Model, inv.MemMiB)
		s.Milli = profile.Milli()
		instances := ceil(int64(s.Total), s.Replicas)
		if !ok {
			filled[gpu.WholeMilli/profile.Milli()] += instances
			continue
		}
		if mib, err := strconv.Atoi(b.node.Labels[base+".memory"]); err == nil && mib > 0 && mib <= 1<<30 {
			profile.MemMiB = mib
		}
		s.Profile = profile
		filled[profile.MemorySlices] += instances * profile.Memory
	}
	inv.Slices = found
	least := 0
	for perGPU, memorySlices := range filled {
		least += ceil(int64(memorySlices), perGPU)
	}
	inv.SlicedGPUs = min(maxSliced, max(count-whole, least))
}

// profileIn is the name of the profile in that of a resource.
func (k *Keys) profileIn(resource string) string {
	for _, prefix := range k.SlicePrefixes {
		if profile, ok := strings.CutPrefix(resource, prefix); ok {
			return profile
		}
	}
	return ""
}

// sliceMilli is the part of a GPU that a slice asked for is, as far as its name alone tells.
func (k *Keys) sliceMilli(resource string) int {
	profile, _ := gpu.ParseProfile(k.profileIn(strings.TrimSuffix(resource, ".shared")), "", 0)
	return profile.Milli()
}
