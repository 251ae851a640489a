package gpu

import (
	"cmp"
	"math"
	"slices"
)

const (
	// maxSizes bounds how many sizes of whole-GPU pods are told apart; those of the least demand are left out.
	maxSizes = 16
	// cpuSteps is how many steps of CPU per GPU there are to the double of it.
	cpuSteps = 2
)

// size is one size of whole-GPU pods in the demand: those of as many GPUs and about as much CPU for each. Pods that
// need much CPU find fewer places than others, and the small ones among them find theirs on large nodes only.
type size struct {
	gpus int
	// cpuMilli is the mean CPU request of such pods.
	cpuMilli int64
	// share is the part of the GPU demand that comes from pods of this size, 0 to 1.
	share float64
}

// Hosts counts, for each size of whole-GPU pods, how many pods of that size fit.
type Hosts [maxSizes]int32

// sizesOf lists the sizes of whole-GPU pods in the mix, the least first. largest is the most GPUs that a node has.
func sizesOf(d *Distribution, largest int) []size {
	type tally struct{ pods, cpu, demand float64 }
	type kind struct{ gpus, cpu int }
	tallies := map[kind]tally{}
	all := 0.0
	for _, p := range d.portions {
		if p.Slices != "" {
			continue
		}
		demand := p.Fraction * float64(p.Count*p.Milli)
		all += demand
		if p.Count > 0 && p.Milli >= WholeMilli {
			k := kind{p.Count, cpuStep(float64(p.CPUMilli) / float64(p.Count))}
			t := tallies[k]
			tallies[k] = tally{t.pods + p.Fraction, t.cpu + p.Fraction*float64(p.CPUMilli), t.demand + demand}
		}
	}
	// As if a pod of each usual size had come: large pods are rare, and a place for one that was given away before the
	// first of them comes stays lost.
	if cpu, demand := d.gpuDemand(); demand > 0 && !math.IsInf(d.independent, 1) {
		for gpus := 1; gpus <= largest; gpus *= 2 {
			pods := 1 / d.independent
			more := pods * float64(gpus) * WholeMilli
			k := kind{gpus, cpuStep(cpu / demand * WholeMilli)}
			t := tallies[k]
			tallies[k] = tally{t.pods + pods, t.cpu + more*cpu/demand, t.demand + more}
			all += more
		}
	}
	sizes := make([]size, 0, len(tallies))
	for k, t := range tallies {
		sizes = append(sizes, size{gpus: k.gpus, cpuMilli: int64(t.cpu / t.pods), share: t.demand / all})
	}
	byGPUs := func(a, b size) int { return cmp.Or(cmp.Compare(a.gpus, b.gpus), cmp.Compare(a.cpuMilli, b.cpuMilli)) }
	slices.SortFunc(sizes, func(a, b size) int { return cmp.Or(cmp.Compare(b.share, a.share), byGPUs(a, b)) })
	sizes = sizes[:min(len(sizes), maxSizes)]
	slices.SortFunc(sizes, byGPUs)
	return sizes
}

// cpuStep numbers amounts of CPU per GPU.
func cpuStep(cpuMilli float64) int { return int(cpuSteps * math.Log2(max(1, cpuMilli))) }

// hostsOf counts how many pods of each size fit: by the GPUs that are entirely free, and by the CPU that such pods
// need.
func hostsOf(sizes []size, wholeFree int, cpuMilli int64) Hosts {
	var h Hosts
	for i, s := range sizes {
		n := wholeFree / s.gpus
		if s.cpuMilli > 0 {
			n = min(n, int(max(0, cpuMilli)/s.cpuMilli))
		}
		h[i] = int32(n)
	}
	return h
}

// hostPrices returns what one more place for a pod of each size is worth, in milli-GPU: all of its GPUs times the
// probability that it will be missing. There are H places. N are expected to be asked for while the idle GPUs fill up,
// by pods of this size and those larger in both GPUs and CPU, which take away such places too. Arrivals being
// independent, the number is about normal with mean and variance N, as a Poisson distribution is.
func hostPrices(sizes []size, hosts Hosts, idleMilli int64) [maxSizes]float64 {
	var prices [maxSizes]float64
	for i, s := range sizes {
		larger := 0.0
		for _, o := range sizes[i:] {
			if o.cpuMilli >= s.cpuMilli {
				larger += o.share
			}
		}
		expected := float64(idleMilli) / WholeMilli * larger / float64(s.gpus)
		prices[i] = WholeMilli * float64(s.gpus) * shortage(float64(hosts[i]), expected, expected)
	}
	return prices
}

// shortage is the probability that less than what is expected to be needed is there.
func shortage(have, expected, variance float64) float64 {
	return math.Erfc((have-expected)/math.Sqrt(2*max(variance, 1))) / 2
}
