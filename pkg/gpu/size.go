package gpu

import (
	"cmp"
	"math"
	"slices"
)

const (
	// MostSizes bounds how many sizes of whole-GPU pods are told apart; those of the least demand are left out.
	MostSizes = 16
	// cpuSteps is how many steps of CPU per GPU there are to the double of it.
	cpuSteps = 2
)

// Size is one size of whole-GPU pods in the demand: those of as many GPUs and about as much CPU for each. Pods that
// need much CPU find fewer places than others, and the small ones among them find theirs on large nodes only.
type Size struct {
	GPUs int
	// CPUMilli is the mean CPU request of such pods.
	CPUMilli int64
	// Share is the part of the GPU demand that comes from pods of this size, 0 to 1.
	Share float64
}

// Sizes lists the sizes of whole-GPU pods in the mix, the least first. largest is the most GPUs that a node has.
func (d *Distribution) Sizes(largest int) []Size {
	type tally struct{ pods, cpu, demand float64 }
	type kind struct{ gpus, cpu int }
	tallies := map[kind]tally{}
	all := 0.0
	for _, p := range d.Portions {
		if p.Slices != "" {
			continue
		}
		demand := p.Fraction * float64(p.Count*p.Milli)
		all += demand
		if p.Milli >= WholeMilli {
			k := kind{p.Count, cpuStep(float64(p.CPUMilli) / float64(p.Count))}
			t := tallies[k]
			tallies[k] = tally{t.pods + p.Fraction, t.cpu + p.Fraction*float64(p.CPUMilli), t.demand + demand}
		}
	}
	// As if a pod of each usual size had come: large pods are rare, and a place for one that was given away before the
	// first of them comes stays lost.
	if cpu, demand := d.GPUDemand(); demand > 0 && !math.IsInf(d.Pods, 1) {
		for gpus := 1; gpus <= largest; gpus *= 2 {
			pods := 1 / d.Pods
			more := pods * float64(gpus) * WholeMilli
			k := kind{gpus, cpuStep(cpu / demand * WholeMilli)}
			t := tallies[k]
			tallies[k] = tally{t.pods + pods, t.cpu + more*cpu/demand, t.demand + more}
			all += more
		}
	}
	sizes := make([]Size, 0, len(tallies))
	for k, t := range tallies {
		sizes = append(sizes, Size{GPUs: k.gpus, CPUMilli: int64(t.cpu / t.pods), Share: t.demand / all})
	}
	byGPUs := func(a, b Size) int { return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.CPUMilli, b.CPUMilli)) }
	slices.SortFunc(sizes, func(a, b Size) int { return cmp.Or(cmp.Compare(b.Share, a.Share), byGPUs(a, b)) })
	sizes = sizes[:min(len(sizes), MostSizes)]
	slices.SortFunc(sizes, byGPUs)
	return sizes
}

// cpuStep numbers amounts of CPU per GPU.
func cpuStep(cpuMilli float64) int { return int(cpuSteps * math.Log2(max(1, cpuMilli))) }
