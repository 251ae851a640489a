package gpu

import "slices"

// unlike reports whether the GPUs of the node differ in memory.
func (inv *Inventory) unlike() bool { return len(inv.Devices) > 0 && inv.Devices[0].MemMiB > 0 }

// MemoryOf is the memory of a device; 0 when unknown.
func (inv *Inventory) MemoryOf(i int) int {
	if inv.unlike() && i >= 0 && i < len(inv.Devices) {
		return inv.Devices[i].MemMiB
	}
	return inv.MemMiB
}

// MemoryServing is the memory of the smallest device that can serve the request while the node is empty, the least of
// all where none can; 0 when unknown.
func (inv *Inventory) MemoryServing(r *Request) int {
	smallest := 0
	for i := range inv.Devices {
		if m := inv.MemoryOf(i); m >= max(r.ShareMemMiB, r.MinMemMiB) && (smallest == 0 || m < smallest) {
			smallest = m
		}
	}
	if smallest == 0 {
		return inv.MemMiB
	}
	return smallest
}

// parts are the sets of devices that can serve the request alone, those with the smallest memory first, on a node whose
// GPUs are not alike. Whole GPUs may differ in memory if each has enough; shares of one pod are on GPUs of the same
// memory. In a part, all other devices are unhealthy.
func (inv *Inventory) parts(r *Request) []*Inventory {
	if r.Count == 0 {
		return []*Inventory{inv}
	}
	var sizes []int
	for i := range inv.Devices {
		sizes = append(sizes, inv.Devices[i].MemMiB)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	least := min(r.MinMemMiB, sizes[len(sizes)-1]) // where no device has enough memory, the reason names the most
	if r.Whole() && r.ShareMemMiB == 0 {
		return []*Inventory{inv.only(func(memMiB int) bool { return memMiB >= least })}
	}
	var parts []*Inventory
	for _, size := range sizes {
		if size >= least {
			parts = append(parts, inv.only(func(memMiB int) bool { return memMiB == size }))
		}
	}
	return parts
}

// only is the inventory with only those devices whose memory serves.
func (inv *Inventory) only(serves func(memMiB int) bool) *Inventory {
	part := inv.Clone()
	part.MemMiB = 0
	for i := range part.Devices {
		d := &part.Devices[i]
		if !serves(d.MemMiB) {
			d.Unhealthy = true
		} else if part.MemMiB == 0 || d.MemMiB < part.MemMiB {
			part.MemMiB = d.MemMiB
		}
		d.MemMiB = 0
	}
	return part
}

// all reports whether the share is a whole device of a node whose devices differ in memory.
func (inv *Inventory) all(s Share) bool {
	return s.Milli >= WholeMilli && s.MemMiB >= inv.MemMiB && inv.unlike()
}

// MostOf is the most compute and the most memory that the request takes of any device that can serve it; false when
// none can.
func (inv *Inventory) MostOf(r *Request) (most Share, ok bool) {
	if !inv.unlike() {
		return r.ShareOn(inv.MemMiB)
	}
	for _, part := range inv.parts(r) {
		if share, resolved := r.ShareOn(part.MemMiB); resolved {
			most.Milli, most.MemMiB, ok = max(most.Milli, share.Milli), max(most.MemMiB, share.MemMiB), true
		}
	}
	if r.Whole() && r.ShareMemMiB == 0 {
		for i := range inv.Devices {
			most.MemMiB = max(most.MemMiB, inv.Devices[i].MemMiB)
		}
	}
	return most, ok
}
