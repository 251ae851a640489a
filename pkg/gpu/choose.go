package gpu

import (
	"math"
	"math/bits"
)

// Choose picks the devices that the request takes on the node, in ascending order, and the share of each. Shares go
// best-fit: to the fullest GPU that still has room, so that large remainders stay whole. Whole GPUs go to the best
// connected free set. It returns false when the request does not fit or takes no device by index.
func Choose(inv *Inventory, r *Request) (devices []int, share Share, ok bool) {
	if !inv.unlike() {
		return choose(inv, r)
	}
	for _, part := range inv.parts(r) {
		if devices, share, ok = choose(part, r); ok {
			break
		}
	}
	return devices, share, ok
}

// choose does so where all devices are alike to the request.
func choose(inv *Inventory, r *Request) ([]int, Share, bool) {
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
	var buf [64]int
	left := buf[:0]
	for i, d := range inv.Devices[:min(len(inv.Devices), len(buf))] {
		if !inv.holds(i, share) {
			d.FreeMilli = -1
		}
		left = append(left, d.FreeMilli)
	}
	set, ok := fullest(left, r.Count, share.Milli)
	if !ok {
		return nil, share, false
	}
	return indices(set), share, true
}

// fullest is the set of count devices, of those with that much compute left, that are the fullest and hold milli more;
// false when there are too few. Devices with less than nothing left are no choice.
func fullest(left []int, count, milli int) (set uint64, ok bool) {
	for range count {
		i := tightest(left, milli, set)
		if i < 0 {
			return 0, false
		}
		set |= 1 << i
	}
	return set, true
}

// tightest is the index of the fullest device that holds the share, but for those of the mask; -1 for none.
func tightest(left []int, milli int, except uint64) int {
	best, least := -1, math.MaxInt
	for i, f := range left {
		if f >= milli && f < least && (except == 0 || i < 64 && except&(1<<i) == 0) {
			best, least = i, f
		}
	}
	return best
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
