package gpu

import (
	"math"
)

// Hosts counts, for each size of whole-GPU pods, how many pods of that size fit.
type Hosts [MostSizes]int32

// hostsOf counts how many pods of each size fit into a room.
func hostsOf(sizes []Size, room Room) Hosts {
	var h Hosts
	for i, s := range sizes {
		n := room.GPUs / s.GPUs
		if s.CPUMilli > 0 {
			n = min(n, int(max(0, room.CPUMilli)/s.CPUMilli))
		}
		h[i] = int32(n)
	}
	return h
}

// add counts n times as many others in.
func (h *Hosts) add(others Hosts, n int) {
	for i := range h {
		h[i] += int32(n) * others[i]
	}
}

// hostPrices returns what one more place for a pod of each size is worth, in milli-GPU: all of its GPUs times the
// probability that it will be missing. There are H places. N are expected to be asked for while the idle GPUs fill up,
// by pods of this size and those larger in both GPUs and CPU, which take away such places too. Arrivals being
// independent, the number is about normal with mean and variance N, as a Poisson distribution is.
func hostPrices(sizes []Size, hosts Hosts, idleMilli int64) [MostSizes]float64 {
	var prices [MostSizes]float64
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

// shortage is the probability that less than what is expected to be needed is there.
func shortage(have, expected, variance float64) float64 {
	return math.Erfc((have-expected)/math.Sqrt(2*max(variance, 1))) / 2
}
