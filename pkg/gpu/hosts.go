package gpu

import (
	"cmp"
	"math"
	"slices"
)

const (
	// maxSizes bounds the number of sizes of whole-GPU pods; those of the least demand are left out.
	maxSizes = 16
	// cpuSteps is how many steps of CPU per GPU lie between an amount and its double.
	cpuSteps = 2
)

// Size is one size of whole-GPU pods in the demand: those with the same number of GPUs and about the same CPU for each.
// Pods that need much CPU fit on fewer nodes than others.
type Size struct {
	GPUs int
	// CPUMilli is the mean CPU request of such pods.
	CPUMilli int64
	// Share is the part of the GPU demand that comes from pods of this size, 0 to 1.
	Share float64
}

// sizesFor lists the sizes of whole-GPU pods in the mix, the smallest first. largest is the number of GPUs of the
// largest node.
func (d *Distribution) sizesFor(largest int) []Size {
	type tally struct{ pods, cpu, demand float64 }
	type step struct{ gpus, cpu int }
	tallies := map[step]tally{}
	all := 0.0
	for _, p := range d.Portions {
		if p.Slices != "" {
			continue
		}
		demand := p.Fraction * float64(p.Count*p.Milli)
		all += demand
		if p.Milli >= WholeMilli {
			k := step{p.Count, cpuStep(float64(p.CPUMilli) / float64(p.Count))}
			t := tallies[k]
			tallies[k] = tally{t.pods + p.Fraction, t.cpu + p.Fraction*float64(p.CPUMilli), t.demand + demand}
		}
	}
	// One pod of each usual size is added: large pods are rare, and capacity for one that was used up before the first of
	// them came stays lost.
	if cpu, demand := d.gpuDemand(); demand > 0 && !math.IsInf(d.Pods, 1) {
		for gpus := 1; gpus <= largest; gpus *= 2 {
			pods := 1 / d.Pods
			more := pods * float64(gpus) * WholeMilli
			k := step{gpus, cpuStep(cpu / demand * WholeMilli)}
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
	sizes = sizes[:min(len(sizes), maxSizes)]
	slices.SortFunc(sizes, byGPUs)
	return sizes
}

// cpuStep numbers amounts of CPU per GPU.
func cpuStep(cpuMilli float64) int { return int(cpuSteps * math.Log2(max(1, cpuMilli))) }

// Hosts counts, for each size of whole-GPU pods, how many pods of that size fit.
type Hosts [maxSizes]int32

// hostsOf counts how many pods of each size fit into the headroom of a node.
func hostsOf(sizes []Size, free Headroom) Hosts {
	var h Hosts
	for i, s := range sizes {
		n := free.GPUs / s.GPUs
		if s.CPUMilli > 0 {
			n = min(n, int(max(0, free.CPUMilli)/s.CPUMilli))
		}
		h[i] = int32(n)
	}
	return h
}

// add adds n times the others.
func (h *Hosts) add(others Hosts, n int) {
	for i := range h {
		h[i] += int32(n) * others[i]
	}
}

// hostPrices returns what the capacity for one more pod of each size is worth, in milli-GPU: all GPUs of the pod times
// the probability that the capacity will be missing. H such pods fit. While the idle GPUs fill up, N are expected of
// this size and of those larger in both GPUs and CPU, which use up the same capacity. Arrivals are independent, so that
// their number is about normal with mean and variance N, as a Poisson distribution is.
func hostPrices(sizes []Size, hosts Hosts, idleMilli int64) [maxSizes]float64 {
	var prices [maxSizes]float64
	for i, s := range sizes {
		larger := 0.0
		for _, o := range sizes[i:] {
			if o.CPUMilli >= s.CPUMilli {
				larger += o.Share
			}
		}
		expected := float64(idleMilli) / WholeMilli * larger / float64(s.GPUs)
		prices[i] = WholeMilli * float64(s.GPUs) * shortage(float64(hosts[i]), expected, expected)
	}
	return prices
}

// shortage is the probability that more is needed than there is.
func shortage(have, expected, variance float64) float64 {
	return math.Erfc((have-expected)/math.Sqrt(2*max(variance, 1))) / 2
}
