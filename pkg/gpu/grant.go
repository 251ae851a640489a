package gpu

import "math/bits"

// faultyMilli is the waste of being given one faulty GPU: work that fails there has to be done again elsewhere, after it
// has held the GPU for nothing. It outweighs what any healthy choice can waste.
const faultyMilli = 20 * WholeMilli

// Grant is what a device allocator gives of one GPU.
type Grant struct {
	// Device is the GPU's index.
	Device int
	Share  Share
	// Slice names a hardware slice of which it is not known of which GPU it is one; Device means nothing then.
	Slice string
	// Model is the GPU's product, empty when unknown, and MemMiB its memory, 0 when unknown.
	Model  string
	MemMiB int
}

// takeGranted takes what is given out of the inventory's free compute and returns what is left, how much was taken and what
// is left of the GPUs of which a share was given.
func (inv *Inventory) takeGranted(buf []int, given []Grant) (left []int, taken, sliver int) {
	after := inv.Clone()
	for _, g := range given {
		taken += g.Share.Milli
		if g.Slice == "" {
			after.Occupy([]int{g.Device}, g.Share)
		}
	}
	var seen uint64
	for _, g := range given {
		if i := g.Device; g.Slice == "" && i >= 0 && i < len(after.Devices) && i < 64 && seen&(1<<i) == 0 && g.Share.Milli < WholeMilli {
			seen |= 1 << i
			sliver += after.Devices[i].FreeMilli
		}
	}
	return after.freeVector(buf), taken, sliver
}

// faulty counts the unhealthy GPUs among those that are given.
func (inv *Inventory) faulty(given []Grant) int {
	n := 0
	mask := maskOf(given)
	for i := range inv.Devices {
		if inv.Devices[i].Unhealthy && i < 64 && mask&(1<<i) != 0 {
			n++
		}
	}
	return n
}

// maskOf has a bit for each GPU that is given, entirely or in part.
func maskOf(given []Grant) uint64 {
	var mask uint64
	for _, g := range given {
		if g.Slice == "" && g.Device >= 0 && g.Device < 64 {
			mask |= 1 << g.Device
		}
	}
	return mask
}

// linkScoreOf is the mean link score of the GPUs that are given, MaxLinkScore for fewer than two.
func (inv *Inventory) linkScoreOf(given []Grant) int {
	mask := maskOf(given)
	n := bits.OnesCount64(mask)
	if n < 2 {
		return MaxLinkScore
	}
	_, score, ok := inv.Links.Best(mask, n, false)
	if !ok {
		return 0
	}
	return score
}

// FitGranted reports whether the request accepts the GPUs that an allocator would give: the annotations of a pod say more
// than its claims do.
func FitGranted(inv *Inventory, r *Request, given []Grant) Reason {
	if len(given) == 0 {
		return Reason{}
	}
	if inv.Leaving != "" {
		return Reason{Cause: NodeLeaving, Detail: inv.Leaving}
	}
	for _, g := range given {
		if g.Slice != "" {
			continue
		}
		if !r.AcceptsModel(g.Model) {
			return Reason{Cause: WrongModel, Detail: g.Model}
		}
		if g.MemMiB < r.MinMemMiB {
			return Reason{Cause: GPUMemory, Need: r.MinMemMiB, Have: g.MemMiB}
		}
	}
	mask := maskOf(given)
	if n := bits.OnesCount64(mask); n > 1 && r.Interconnect == InterconnectRequired {
		if _, _, ok := inv.Links.Best(mask, n, true); !ok {
			return Reason{Cause: NotLinked, Need: n, Have: inv.Links.LargestLinked(len(inv.Devices))}
		}
	}
	return Reason{}
}
