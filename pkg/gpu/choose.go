package gpu

import (
	"math"
	"math/bits"
)

// taken is subtracted from the free compute of a device that is chosen, so that it is not chosen again.
const taken = 1 << 30

// Choose picks the devices that the request takes on the node, in ascending order, and the share of each. Shares go
// best-fit: to the fullest GPU that has the share free, so that large remainders stay whole. Whole GPUs go to the best
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

// choose is Choose for a node whose devices are alike to the request.
func choose(inv *Inventory, r *Request) ([]int, Share, bool) {
	share, ok := r.ShareOn(inv.MemMiB)
	if !ok || r.Count < 1 {
		return nil, share, false
	}
	if r.Whole() {
		whole := inv.devicesThat(Device.whole)
		if whole.count < r.Count {
			return nil, share, false
		}
		set, _, ok := inv.best(whole, r.Count, r.needsLinks())
		if !ok {
			return nil, share, false
		}
		if len(inv.Devices) > MaxLinked {
			return inv.firstWhole(r.Count), share, true
		}
		return indices(set), share, true
	}
	var buf [MaxLinked]int
	left := buf[:0]
	for i, d := range inv.Devices {
		if !inv.canTake(i, share) {
			d.FreeMilli = -1
		}
		left = append(left, d.FreeMilli)
	}
	if !takeFullest(left, r.Count, share.Milli) {
		return nil, share, false
	}
	devices := make([]int, 0, r.Count)
	for i, f := range left {
		if f < -1 {
			devices = append(devices, i)
		}
	}
	return devices, share, true
}

// takeFullest marks the count fullest devices that have milli left as taken; false when there are too few. left is the
// free compute of each device, negative for those that must not be chosen.
func takeFullest(left []int, count, milli int) bool {
	for range count {
		i := tightest(left, milli)
		if i < 0 {
			return false
		}
		left[i] -= taken
	}
	return true
}

// tightest is the index of the fullest device that has milli left; -1 for none.
func tightest(left []int, milli int) int {
	best, least := -1, math.MaxInt
	for i, f := range left {
		if f >= milli && f < least {
			best, least = i, f
		}
	}
	return best
}

// firstWhole are the first n devices that are entirely free.
func (inv *Inventory) firstWhole(n int) []int {
	devices := make([]int, 0, n)
	for i, d := range inv.Devices {
		if len(devices) < n && d.whole() {
			devices = append(devices, i)
		}
	}
	return devices
}

func indices(set uint64) []int {
	out := make([]int, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		out = append(out, bits.TrailingZeros64(set))
	}
	return out
}

// OccupyWhole assigns a number of whole devices. Which they are is not known: the best connected set is what the device
// plugin prefers.
func (inv *Inventory) OccupyWhole(used int) {
	used = min(used, inv.FreeWhole())
	if devices, share, ok := Choose(inv, &Request{Count: used, Milli: WholeMilli}); ok {
		inv.Take(devices, share)
	}
}
