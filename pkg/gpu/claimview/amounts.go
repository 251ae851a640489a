package claimview

import (
	"math"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/pkg/gpu"
)

const mebibyte = 1 << 20

// computeAmounts are names under which drivers count the compute of a GPU, in capacities and in counters.
var computeAmounts = []string{"multiprocessors", "cores", "computeUnits", "compute"}

// amounts are capacities or counters by name, without the driver's domain.
type amounts map[string]float64

// amountsOf reads quantities by their names, which may have the driver's domain.
func amountsOf[K ~string, V any](driver string, list map[K]V, quantity func(K, V) resource.Quantity) amounts {
	a := make(amounts, len(list))
	for name, of := range list {
		if q := quantity(name, of); q.Sign() > 0 {
			a[strings.TrimPrefix(string(name), driver+"/")] = q.AsApproximateFloat64()
		}
	}
	return a
}

func (d sourceDevice) capacity() amounts {
	return amountsOf(d.slice.Spec.Driver, d.device.Capacity,
		func(_ resourcev1.QualifiedName, c resourcev1.DeviceCapacity) resource.Quantity { return c.Value })
}

// countersOf reads a set of counters, or what a device consumes of it.
func countersOf(counters map[string]resourcev1.Counter) amounts {
	return amountsOf("", counters, func(_ string, c resourcev1.Counter) resource.Quantity { return c.Value })
}

// milliOf is the part of a GPU with the total that these amounts are, in milli-GPU: of its compute if that is counted,
// else of its memory, else the largest part of any amount, else all of it. It is rounded down, so that parts that fill
// a GPU do not seem too large.
func (a amounts) milliOf(total amounts) int {
	for _, name := range append(computeAmounts[:len(computeAmounts):len(computeAmounts)], amountMemory) {
		if used := a[name]; used > 0 && total[name] > 0 {
			return partMilli(used, total[name])
		}
	}
	largest := 0
	for name, used := range a {
		if total[name] > 0 {
			largest = max(largest, partMilli(used, total[name]))
		}
	}
	if largest == 0 {
		return gpu.WholeMilli
	}
	return largest
}

func partMilli(used, total float64) int {
	return max(1, int(math.Min(1, used/total)*gpu.WholeMilli+1e-6))
}

// memMiB is the memory among the amounts, 0 where it is not counted.
func (a amounts) memMiB() int {
	return int(math.Min(a[amountMemory]/mebibyte, 1<<30))
}
