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

// set sets the amount of that name, which may have the driver's domain.
func (a amounts) set(driver, name string, q *resource.Quantity) {
	if q.Sign() > 0 {
		a[strings.TrimPrefix(name, driver+"/")] = q.AsApproximateFloat64()
	}
}

func (d sourceDevice) capacity() amounts {
	a := make(amounts, len(d.device.Capacity))
	for name := range d.device.Capacity {
		q := d.device.Capacity[name].Value
		a.set(d.slice.Spec.Driver, string(name), &q)
	}
	return a
}

// consumedOf reads the capacity of a device that a claim was given.
func consumedOf(driver string, consumed map[resourcev1.QualifiedName]resource.Quantity) amounts {
	a := make(amounts, len(consumed))
	for name, q := range consumed {
		a.set(driver, string(name), &q)
	}
	return a
}

// countersOf reads a set of counters, or what a device consumes of it.
func countersOf(counters map[string]resourcev1.Counter) amounts {
	a := make(amounts, len(counters))
	for name := range counters {
		q := counters[name].Value
		a.set("", name, &q)
	}
	return a
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
