package gpu

import "slices"

// faultyMilli is the waste of one faulty GPU: work that fails there has to be done again elsewhere. It outweighs what
// any healthy choice can waste.
const faultyMilli = 20 * WholeMilli

// Grant is what a device allocator gives of one GPU.
type Grant struct {
	// Device is the GPU's index.
	Device int
	Share  Share
	// Slice names a hardware slice whose GPU is not known; Device means nothing then.
	Slice string
	// Model is the GPU's product, empty when unknown, and MemMiB its memory, 0 when unknown.
	Model  string
	MemMiB int
}

// takeGranted subtracts the grants from the inventory's free compute and returns what is left and how much was taken.
func (inv *Inventory) takeGranted(buf []int, given []Grant) (left []int, taken int) {
	after := inv.Clone()
	for _, g := range given {
		taken += g.Share.Milli
		if g.Slice == "" {
			after.Occupy([]int{g.Device}, g.Share)
		}
	}
	return after.freeVector(buf), taken
}

// faulty counts the unhealthy GPUs among those that are given.
func (inv *Inventory) faulty(given []Grant) int {
	n := 0
	for i, d := range inv.Devices {
		if d.Unhealthy && slices.ContainsFunc(given, func(g Grant) bool { return g.of(i) }) {
			n++
		}
	}
	return n
}

// of reports whether the grant is of that GPU, entirely or in part.
func (g Grant) of(device int) bool { return g.Slice == "" && g.Device == device }

// gpusOf are the GPUs that are given, entirely or in part.
func gpusOf(given []Grant) deviceSet {
	var s deviceSet
	for n, g := range given {
		again := slices.ContainsFunc(given[:n], func(other Grant) bool { return other.of(g.Device) })
		if g.Slice == "" && g.Device >= 0 && !again {
			s.mask |= 1 << g.Device
			s.count++
		}
	}
	return s
}

// linkScoreOf is the mean link score of the GPUs that are given, maxLinkScore for fewer than two.
func (inv *Inventory) linkScoreOf(given []Grant) int {
	gpus := gpusOf(given)
	if gpus.count < 2 {
		return maxLinkScore
	}
	_, score, _ := inv.best(gpus, gpus.count, false)
	return score
}

// FitGranted reports whether the request accepts the GPUs that an allocator would give: annotations of a pod may ask
// for more than its claims do.
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
	if gpus := gpusOf(given); gpus.count > 1 && r.Interconnect == InterconnectRequired {
		if _, _, ok := inv.best(gpus, gpus.count, true); !ok {
			return Reason{Cause: NotLinked, Need: gpus.count, Have: inv.Links.LargestLinked(len(inv.Devices))}
		}
	}
	return Reason{}
}
