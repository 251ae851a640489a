package claimview

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpuview"
)

// GPUNode is the node with the GPUs that its slices describe; the node as it was read where there are none, or where
// the kubelet offers GPUs, so that none is counted twice.
func (g *GPUs) GPUNode(node *gpuview.Node) *gpuview.Node {
	if g == nil {
		return node
	}
	if n := g.slices.Load().Sole(node); n != nil {
		return n.GPUNode(node)
	}
	return node
}

// Demand is what a pod with these claims asks of GPUs: what the allocator gives it on the first kind of node that could
// serve it if it were empty, or gave it where all is allocated. Claims are known only with all their conditions, and
// these only by trying. It returns false where no such node could serve them, or where that is not known.
func (g *GPUs) Demand(ctx context.Context, c *Pod) (r gpu.Request, ok bool) {
	if g == nil || c == nil {
		return r, false
	}
	read, err := g.readSlices()
	if err != nil || read.Len() == 0 {
		return r, false
	}
	remembers := c.Shape() != "" && len(c.Allocated()) == 0
	if k, found := g.demands.Get(c.Shape()); found && remembers && k.(demand).good(read) {
		return k.(demand).request, k.(demand).ok
	}
	var given []gpu.Grant
	for _, claim := range c.Allocated() {
		for name := range read.Names() {
			before := len(given)
			if given = read.Node(name).Given(given, claim.Status.Allocation.Devices.Results); len(given) > before {
				break
			}
		}
	}
	ok, sure := true, true
	if claims := c.Claims(c.Resources()); len(claims) > 0 {
		if until, found := g.late.Get(c.Shape()); found && time.Now().Before(until.(time.Time)) {
			return r, false
		}
		more := g.try(ctx, read, claims)
		if more.late && !more.ok && c.Shape() != "" {
			g.late.Add(c.Shape(), time.Now().Add(lateFor))
		}
		ok, sure = more.ok, more.sure
		given = append(given, more.given...)
	}
	r = RequestOf(given)
	if remembers && sure {
		g.demands.Add(c.Shape(), demand{read.KindsKey(), read.Number(), r, ok})
	}
	return r, ok
}

// demand is what is remembered of claims of one shape.
type demand struct {
	// kinds and number are those of the slices for which it holds.
	kinds   string
	number  uint64
	request gpu.Request
	ok      bool
}

// good reports whether the demand is still known. A node of a kind that was tried before may serve claims that ask for
// more than a kind says.
func (d demand) good(read *Slices) bool {
	return d.kinds == read.KindsKey() && (d.ok || d.number == read.Number())
}

// trial is what came of allocating claims on empty nodes.
type trial struct {
	given []gpu.Grant
	ok    bool
	// sure reports that it would be the same if tried again, late that there was not enough time.
	sure, late bool
}

// try allocates the claims on an empty node of each kind until one can serve them.
func (g *GPUs) try(ctx context.Context, read *Slices, claims []*resourcev1.ResourceClaim) trial {
	empty := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	allocator, err := structured.NewAllocator(ctx, g.features, empty, g.dra.DeviceClasses(), read.List(), g.compiled)
	if err != nil {
		return trial{}
	}
	until := time.Now().Add(g.kindsWithin)
	t := trial{sure: true}
	for _, n := range read.Kinds() {
		node, err := g.nodes.Get(n.Name())
		if err != nil { // Without its labels it can have only devices of its own.
			node, t.sure = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name()}}, false
		}
		left := min(g.nodeWithin, time.Until(until))
		if left <= 0 || ctx.Err() != nil {
			t.sure = false
			break
		}
		search, cancel := context.WithTimeout(ctx, left)
		results, err := allocator.Allocate(search, node, claims)
		t.late = t.late || err != nil && ctx.Err() == nil && search.Err() != nil
		cancel()
		if err != nil || len(results) != len(claims) {
			t.sure = t.sure && err == nil
			continue
		}
		for i := range results {
			t.given = n.Given(t.given, results[i].Devices.Results)
		}
		t.ok = true
		break
	}
	return t
}
