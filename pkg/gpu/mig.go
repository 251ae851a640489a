package gpu

import (
	"strconv"
	"strings"
	"sync"

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

// TakenMilli is the part of the GPU that an instance takes from others: the greater of its compute and its memory.
func (p Profile) TakenMilli() int {
	if p.MemorySlices == 0 {
		return p.Milli()
	}
	return max(p.Milli(), WholeMilli*p.Memory/p.MemorySlices)
}

// MostPerGPU is how many instances of the profile a GPU holds; 0 when the geometry is unknown.
func (p Profile) MostPerGPU() int {
	if p.Alone {
		return 1
	}
	n := 0
	for range p.placements() {
		n++
	}
	return n
}

// layout is which memory slices of one GPU are taken, and whether its media engines are.
type layout struct {
	memory uint8
	media  bool
	// slices is how many memory slices the GPU has; 0 while nothing of it is taken, which says nothing of its geometry.
	slices int
}

// placements calls yield with the memory slices of each legal placement, from the first slice on. The last of eight
// memory slices has no compute slice of its own: the smallest instances cannot start there.
func (p Profile) placements() func(yield func(uint8) bool) {
	return func(yield func(uint8) bool) {
		if p.Memory == 0 {
			return
		}
		last := p.MemorySlices - p.Memory
		switch {
		case p.MemorySlices == 8 && p.Compute == 4:
			last = 0
		case p.MemorySlices == 8 && p.Compute == 2:
			last = 4
		case p.MemorySlices == 8 && p.Memory == 1:
			last = 6
		}
		for start := 0; start <= last; start += p.Memory {
			if !yield((1<<p.Memory - 1) << start) {
				return
			}
		}
	}
}

// fits reports whether the GPU can have the geometry of the profile, and the placement is free.
func (l layout) fits(p *Profile, at uint8) bool {
	return (l.slices == 0 || l.slices == p.MemorySlices) && l.memory&at == 0 && (!p.Alone || !l.media)
}

func (l layout) with(p *Profile, at uint8) layout {
	return layout{l.memory | at, l.media || p.Alone, p.MemorySlices}
}

// usual are the profiles by which the use of what is left of a GPU is judged, by its number of memory slices.
var usual = map[int][]Profile{
	8: profilesOf(7, 8, [][2]int{{1, 1}, {1, 2}, {2, 2}, {3, 4}, {4, 4}, {7, 8}}),
	4: profilesOf(4, 4, [][2]int{{1, 1}, {2, 2}, {4, 4}}),
}

// profilesOf makes profiles of their compute and memory slices.
func profilesOf(computeSlices, memorySlices int, shapes [][2]int) []Profile {
	profiles := make([]Profile, 0, len(shapes))
	for _, s := range shapes {
		profiles = append(profiles, Profile{
			Compute: s[0], Memory: s[1], ComputeSlices: computeSlices, MemorySlices: memorySlices,
		})
	}
	return profiles
}

// usableOf holds what usable returns for each layout of a GPU with four and with eight memory slices.
var usableOf = sync.OnceValue(func() map[int][]int {
	all := map[int][]int{}
	for slices := range usual {
		all[slices] = make([]int, 1<<slices)
		for memory := range all[slices] {
			all[slices][memory] = layout{memory: uint8(memory), slices: slices}.countUsable()
		}
	}
	return all
})

// usable is how much of the GPU, in milli-GPU, its profiles can still use.
func (l layout) usable() int { return usableOf()[l.slices][l.memory] }

// countUsable is the mean, over the usual profiles, of the part of their placements that is free.
func (l layout) countUsable() int {
	sum := 0
	for i := range usual[l.slices] {
		p := &usual[l.slices][i]
		free, all := 0, 0
		for at := range p.placements() {
			all++
			if l.fits(p, at) {
				free++
			}
		}
		sum += WholeMilli * free / all
	}
	return sum / len(usual[l.slices])
}

// placeSlice puts an instance where what is left stays most usable, and returns how much less usable it is; false when
// no GPU has a place for it.
func placeSlice(gpus []layout, p *Profile) (lost int, ok bool) {
	best, bestAt := -1, uint8(0)
	for i, l := range gpus {
		if l.slices == 0 {
			l.slices = p.MemorySlices
		}
		for at := range p.placements() {
			if !l.fits(p, at) {
				continue
			}
			if loss := l.usable() - l.with(p, at).usable(); best < 0 || loss < lost {
				best, bestAt, lost = i, at, loss
			}
		}
	}
	if best < 0 {
		return 0, false
	}
	gpus[best] = gpus[best].with(p, bestAt)
	return lost, true
}

// brokenSlices is how much GPU, in milli-GPU, becomes of less use to other profiles than the slices that the request
// takes are worth. Instances are made in advance, and which GPU each is on is not known: those in use are taken to lie
// where they harm least. It is 0 where the geometry of a slice is unknown.
func (inv *Inventory) brokenSlices(wanted []SliceCount) float64 {
	if inv.SlicedGPUs == 0 || len(wanted) == 0 {
		return 0
	}
	gpus := make([]layout, inv.SlicedGPUs)
	for i := range inv.Slices {
		s := &inv.Slices[i]
		if s.Profile.Memory == 0 {
			return 0
		}
		for range (s.Total - s.Count + max(1, s.Replicas) - 1) / max(1, s.Replicas) {
			placeSlice(gpus, &s.Profile)
		}
	}
	lost := 0
	for _, w := range wanted {
		s := inv.slice(w.Resource)
		if s == nil {
			return 0
		}
		for range w.Count {
			less, ok := placeSlice(gpus, &s.Profile)
			if !ok {
				break
			}
			lost += less - s.Profile.TakenMilli()
		}
	}
	return float64(lost)
}
