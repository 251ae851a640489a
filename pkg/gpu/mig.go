package gpu

import (
	"strconv"
	"strings"

	"berth.dev/berth/pkg/gpu/catalog"
)

// Profile is a kind of hardware slice (a MIG GPU instance). The zero value is one of unknown geometry. The numbers are
// those of NVIDIA's Multi-Instance GPU User Guide: a GPU has 7 compute and 8 memory slices, an A30 and an RTX PRO 6000
// have 4 of each.
type Profile struct {
	// Compute and Memory are how many slices of each kind an instance takes.
	Compute, Memory int
	// ComputeSlices and MemorySlices are how many the GPU has.
	ComputeSlices, MemorySlices int
	// MemMiB is the nominal memory of an instance.
	MemMiB int
	// Alone is set for the profiles that a GPU holds once: those with the media engines.
	Alone bool
}

// ParseProfile reads the name of a profile, such as 1g.5gb, 1g.10gb+me or, as resource names spell it, 1g.10gb.me. The
// model and the memory of the GPU, 0 for that of the model, tell profiles apart that share a name.
func ParseProfile(name, model string, memMiB int) (Profile, bool) {
	head, rest, ok := strings.Cut(name, "g.")
	if !ok {
		return Profile{}, false
	}
	size, suffix, ok := strings.Cut(rest, "gb")
	compute, errCompute := strconv.Atoi(head)
	gib, errSize := strconv.Atoi(size)
	if !ok || errCompute != nil || errSize != nil || compute < 1 || gib < 1 || gib > 1<<10 {
		return Profile{}, false
	}
	if suffix != "" && !strings.ContainsAny(suffix[:1], "+.-") {
		return Profile{}, false
	}
	p := Profile{Compute: compute, ComputeSlices: 7, MemorySlices: 8, MemMiB: gib << 10}
	if product, ok := catalog.Lookup(model); ok && memMiB == 0 {
		memMiB = product.MemMiB
	}
	if quartered(name, model) {
		p.ComputeSlices, p.MemorySlices = 4, 4
	}
	if compute > p.ComputeSlices {
		return Profile{}, false
	}
	p.Memory = memorySlices(&p, memMiB)
	extension := strings.TrimLeft(suffix, "+.")
	p.Alone = extension == "me" || extension == "me.all"
	return p, true
}

// quartered reports whether the GPU has four slices. Where the model is unknown the profiles of the A30 give it away.
func quartered(name, model string) bool {
	if model == "" {
		base, _, _ := strings.Cut(name, "gb")
		return base == "1g.6" || base == "2g.12" || base == "4g.24"
	}
	upper := strings.ToUpper(model)
	return catalog.ContainsWord(upper, "A30") || catalog.ContainsWord(upper, "RTX-PRO-6000")
}

// memorySlices is the part of the GPU's memory that the instance has: one, two, four or eight slices. Where the memory
// of the GPU is unknown it is what the smallest profile of that compute has.
func memorySlices(p *Profile, memMiB int) int {
	if memMiB <= 0 {
		switch {
		case p.MemorySlices == 4 || p.Compute < 3:
			return p.Compute
		case p.Compute < 5:
			return 4
		default:
			return 8
		}
	}
	best := 1
	for n := 1; n <= p.MemorySlices; n *= 2 {
		if distance(p.MemMiB*p.MemorySlices, n*memMiB) < distance(p.MemMiB*p.MemorySlices, best*memMiB) {
			best = n
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

// Milli is the part of the GPU's compute that an instance has.
func (p Profile) Milli() int {
	if p.ComputeSlices == 0 {
		return WholeMilli / 7
	}
	return WholeMilli * p.Compute / p.ComputeSlices
}

// takenMilli is the part of the GPU that an instance takes from others: the greater of its compute and its memory.
func (p Profile) takenMilli() int {
	if p.MemorySlices == 0 {
		return p.Milli()
	}
	return max(p.Milli(), WholeMilli*p.Memory/p.MemorySlices)
}

// MostPerGPU is how many instances of the profile a GPU holds; 0 when the geometry is unknown.
func (p Profile) MostPerGPU() int {
	switch {
	case p.Memory == 0:
		return 0
	case p.Alone:
		return 1
	}
	return min(p.ComputeSlices/p.Compute, p.MemorySlices/p.Memory)
}
