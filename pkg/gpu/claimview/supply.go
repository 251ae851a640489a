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

// request is what a claim asks for together: the first of some choices that there is.
type request []choice

// choice is a number of devices of some kinds.
type choice struct {
	// count is how many, 0 for all that the node has.
	count int64
	kinds map[kind]bool
	// amounts are what is asked of the capacity of each device, nil for what its policy says.
	amounts map[resourcev1.QualifiedName]resource.Quantity
	// tolerates reports that the choice tolerates taints, whichever.
	tolerates bool
}

// supply is what is left of a node's devices while those for one pod are counted off.
type supply struct {
	node *Node
	// held reports which devices a claim has for itself.
	held  []bool
	free  []gpu.Device
	given []gpu.Grant
}

// supplyOf is what is free on a node, by its inventory and by what is used of each device.
func supplyOf(n *Node, inventory *gpu.Inventory, used []usage) *supply {
	s := &supply{node: n, held: make([]bool, len(n.devices)), free: slices.Clone(inventory.Devices)}
	for i, u := range used {
		s.held[i] = u.milli > 0 && n.devices[i].capacity == nil
	}
	return s
}

// first counts off the first devices that suit, in their order, as the allocator of Kubernetes does in most cases. It
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

// take counts off what a choice asks for, or nothing.
func (s *supply) take(c choice) bool {
	after := supply{s.node, slices.Clone(s.held), slices.Clone(s.free), slices.Clone(s.given)}
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
			return false // all are all, free or not
		}
	}
	if n == 0 || n < c.count {
		return false
	}
	*s = after
	return true
}

// takeDevice counts off a share of a device if it is free.
func (s *supply) takeDevice(i int, u usage) bool {
	d := &s.node.devices[i]
	if s.held[i] {
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
	s.held[i] = d.capacity == nil
	s.given = s.node.grants(s.given, d, u)
	return true
}

// asked is how much of the device a request for amounts of its capacity gets.
func (d *claimDevice) asked(requested map[resourcev1.QualifiedName]resource.Quantity) usage {
	if d.capacity == nil {
		return wholeDevice
	}
	a := make(amounts, len(d.capacity))
	for name, c := range d.source.device.Capacity {
		q := c.Value
		if asked, ok := requested[name]; ok {
			q = asked
		} else if c.RequestPolicy != nil && c.RequestPolicy.Default != nil {
			q = *c.RequestPolicy.Default
		}
		a.set(d.id.Driver.String(), string(name), &q)
	}
	return d.share(a)
}

// requestOf sums up what is given as equal shares of a number of GPUs.
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
