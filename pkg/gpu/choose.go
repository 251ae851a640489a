package gpu

import "math/bits"

// Choose picks the devices that the request takes on the node, in ascending order, and the share of each. Shares go
// best-fit: to the fullest GPU that still has room, so that large remainders stay whole. Whole GPUs go to the best
// connected free set. It returns false when the request does not fit or takes no device by index.
func Choose(inv *Inventory, r *Request) ([]int, Share, bool) {
	share, ok := r.ShareOn(inv.MemMiB)
	if !ok || r.Count < 1 {
		return nil, share, false
	}
	if r.Whole() {
		mask := inv.wholeMask()
		if bits.OnesCount64(mask) < r.Count {
			return nil, share, false
		}
		set, _, ok := inv.Links.Best(mask, r.Count, r.Interconnect == InterconnectRequired && r.Count > 1)
		if !ok {
			return nil, share, false
		}
		return indices(set), share, true
	}
	var taken uint64
	for range r.Count {
		best := -1
		for i, d := range inv.Devices {
			if i >= 64 {
				break
			}
			if taken&(1<<i) == 0 && inv.holds(i, share) && (best < 0 || d.FreeMilli < inv.Devices[best].FreeMilli) {
				best = i
			}
		}
		if best < 0 {
			return nil, share, false
		}
		taken |= 1 << best
	}
	return indices(taken), share, true
}

// wholeMask has a bit for each device that is entirely free by index.
func (inv *Inventory) wholeMask() uint64 {
	var mask uint64
	for i, d := range inv.Devices {
		if i >= 64 {
			break
		}
		if d.whole() {
			mask |= 1 << i
		}
	}
	return mask
}

func indices(set uint64) []int {
	out := make([]int, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		out = append(out, bits.TrailingZeros64(set))
	}
	return out
}
