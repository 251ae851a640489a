package claimview

import (
	"math"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"berth.dev/berth/pkg/gpu"
)

// request is one request of a claim: the first of its choices that is available.
type request []choice

// choice is a number of devices of any of some kinds.
type choice struct {
	// count is how many, 0 for all that the node has.
	count int64
	kinds map[kind]bool
	// amounts are requested of the capacity of each device, nil for the defaults of its policy.
	amounts map[resourcev1.QualifiedName]resource.Quantity
	// tolerates reports that the choice has tolerations, whichever.
	tolerates bool
}

// supply is what is left of a node's devices while those for one pod are chosen.
type supply struct {
	node *Node
	// exclusive reports which devices are allocated to one claim alone.
	exclusive []bool
	free      []gpu.Device
	given     []gpu.Grant
}

// supplyOf is what is free on a node, by its inventory and by what is used of each device.
func supplyOf(n *Node, inventory *gpu.Inventory, used []usage) *supply {
	s := &supply{node: n, exclusive: make([]bool, len(n.devices)), free: slices.Clone(inventory.Devices)}
	for i, u := range used {
		s.exclusive[i] = u.milli > 0 && n.devices[i].capacity == nil
	}
	return s
}

// first chooses the first devices that suit, in their order, as the allocator of Kubernetes does in most cases. It
// knows neither constraints between devices nor where on a GPU a partition is, so that it may find devices where the
// allocator finds none.
func (s *supply) first(requests []request) (given []gpu.Grant, ok bool) {
	for _, r := range requests {
		if !slices.ContainsFunc(r, s.take) {
			return nil, false
		}
	}
	return s.given, true
}

// take chooses what a choice asks for, or nothing.
func (s *supply) take(c choice) bool {
	after := supply{s.node, slices.Clone(s.exclusive), slices.Clone(s.free), slices.Clone(s.given)}
	n := int64(0)
	for i := range s.node.devices {
		d := &s.node.devices[i]
		if c.count > 0 && n == c.count {
			break
		}
		if !c.kinds[d.kind] {
			continue
		}
		if !d.tainted || c.tolerates {
			if after.takeDevice(i, d.asked(c.amounts)) {
				n++
				continue
			}
		}
		if c.count == 0 {
			return false // all devices must be free
		}
	}
	if n == 0 || n < c.count {
		return false
	}
	*s = after
	return true
}

// takeDevice takes a part of a device if it is free.
func (s *supply) takeDevice(i int, u usage) bool {
	d := &s.node.devices[i]
	if s.exclusive[i] {
		return false
	}
	for _, p := range d.parts {
		share := p.of(u)
		if d.slice == "" && (s.free[p.gpu].FreeMilli < share.Milli || s.free[p.gpu].FreeMemMiB < share.MemMiB) {
			return false
		}
	}
	for _, p := range d.parts {
		if share := p.of(u); d.slice == "" {
			s.free[p.gpu].FreeMilli -= share.Milli
			s.free[p.gpu].FreeMemMiB -= share.MemMiB
		}
	}
	s.exclusive[i] = d.capacity == nil
	s.given = s.node.grants(s.given, d, u)
	return true
}

// asked is the part of the device that a request for amounts of its capacity gets.
func (d *claimDevice) asked(requested map[resourcev1.QualifiedName]resource.Quantity) usage {
	if d.capacity == nil {
		return wholeDevice
	}
	return d.share(amountsOf(d.id.Driver.String(), d.source.device.Capacity,
		func(name resourcev1.QualifiedName, c resourcev1.DeviceCapacity) resource.Quantity {
			if asked, ok := requested[name]; ok {
				return asked
			}
			if c.RequestPolicy != nil && c.RequestPolicy.Default != nil {
				return *c.RequestPolicy.Default
			}
			return c.Value
		}))
}

// requestOf sums up grants as equal shares of a number of GPUs.
func requestOf(given []gpu.Grant) gpu.Request {
	var r gpu.Request
	total, gpus := 0, sets.New[int]()
	for _, g := range given {
		if g.Slice != "" {
			at := slices.IndexFunc(r.Slices, func(s gpu.SliceCount) bool { return s.Resource == g.Slice })
			if at < 0 {
				at = len(r.Slices)
				r.Slices = append(r.Slices, gpu.SliceCount{Resource: g.Slice, Milli: g.Share.Milli})
			}
			r.Slices[at].Count++
			continue
		}
		total += g.Share.Milli
		gpus.Insert(g.Device)
	}
	slices.SortFunc(r.Slices, func(a, b gpu.SliceCount) int { return strings.Compare(a.Resource, b.Resource) })
	if n := gpus.Len(); n > 0 {
		r.Count, r.Milli = n, min(gpu.WholeMilli, int(math.Ceil(float64(total)/float64(n))))
	}
	return r
}
