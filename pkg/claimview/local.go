package claimview

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// LocalDevices are the devices of all drivers that only one node can have: what the allocator gives of a node's GPUs
// may depend on them, as a claim may ask for a GPU and a network device that are close to each other. They are
// immutable.
type LocalDevices struct {
	// number is never given twice: another number is another state of the slices.
	number uint64
	ids    []structured.DeviceID
	// others counts the devices that are no GPUs by driver.
	others string
}

// Stamp is equal for states that are alike: the same slices with the same allocations.
func (l *LocalDevices) Stamp(allocated *structured.AllocatedState) uint64 {
	return stampOf(l.number, len(l.ids), func(i int) structured.DeviceID { return l.ids[i] }, allocated)
}

// readLocals gathers the devices of each node. They are those that were known where none of their pools has changed.
func (c *Slices) readLocals(old *Slices, changed sets.Set[[2]string], gpus, others map[string][]sourceDevice) {
	read := func(name string) {
		here, more := gpus[name], others[name]
		if known := old.locals[name]; known != nil && len(here)+len(more) == len(known.ids) && !anyOf(changed, here) &&
			!anyOf(changed, more) {
			c.locals[name] = known
			return
		}
		c.numbered++
		l := &LocalDevices{number: c.numbered, ids: make([]structured.DeviceID, 0, len(here)+len(more))}
		byDriver := map[string]int{}
		for i, d := range slices.Concat(here, more) {
			l.ids = append(l.ids, structured.MakeDeviceID(d.slice.Spec.Driver, d.slice.Spec.Pool.Name, d.device.Name))
			if i >= len(here) {
				byDriver[d.slice.Spec.Driver]++
			}
		}
		var drivers []string
		for driver, n := range byDriver {
			drivers = append(drivers, fmt.Sprintf("%s %d ", driver, n))
		}
		slices.Sort(drivers)
		l.others = strings.Join(drivers, "")
		c.locals[name] = l
	}
	for name := range gpus {
		read(name)
	}
	for name := range others {
		if gpus[name] == nil {
			read(name)
		}
	}
}

var stampSeed = maphash.MakeSeed()

// stampOf is equal for states of devices that are alike: the same number, and the same allocated.
func stampOf(number uint64, n int, id func(int) structured.DeviceID, allocated *structured.AllocatedState) uint64 {
	var h maphash.Hash
	h.SetSeed(stampSeed)
	maphash.WriteComparable(&h, number)
	for i := range n {
		id := id(i)
		if allocated.AllocatedDevices.Has(id) {
			maphash.WriteComparable(&h, i)
		} else if consumed := allocated.AggregatedCapacity[id]; len(consumed) > 0 {
			// The order of a map is by chance, a sum is not.
			var sum uint64
			for name, q := range consumed {
				sum += maphash.Comparable(stampSeed, amountKey{string(name), q.AsApproximateFloat64()})
			}
			maphash.WriteComparable(&h, [2]uint64{uint64(i), sum})
		}
	}
	return max(1, h.Sum64()) // 0 stands for no devices
}

type amountKey struct {
	name   string
	amount float64
}
