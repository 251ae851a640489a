package clusterstate

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// maxKinds is how many kinds of nodes are tried to find out what claims ask for.
const maxKinds = 16

// GPUNode is the node with the GPUs that its slices describe; the node as it was read where there are none, or where the
// kubelet offers GPUs, so that none is counted twice.
func (g *GPUClaims) GPUNode(node *kubeview.GPUNode) *kubeview.GPUNode {
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
// these only by trying. It returns false where no node could serve them.
func (g *GPUClaims) Demand(ctx context.Context, c *kubeview.PodClaims) (r gpu.Request, ok bool) {
	if g == nil || c == nil {
		return r, false
	}
	read, err := g.readSlices()
	if err != nil || read.Len() == 0 {
		return r, false
	}
	type known struct {
		kinds   string
		request gpu.Request
		ok      bool
	}
	if k, found := g.demands.Get(c.Shape()); found && c.Shape() != "" && len(c.Allocated()) == 0 && k.(known).kinds == read.KindsKey() {
		return k.(known).request, k.(known).ok
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
	ok = true
	if claims := c.Claims(c.Resources()); len(claims) > 0 {
		var more []gpu.Grant
		more, ok = g.try(ctx, read, claims)
		given = append(given, more...)
	}
	r = kubeview.RequestOf(given)
	if c.Shape() != "" && len(c.Allocated()) == 0 {
		g.demands.Add(c.Shape(), known{read.KindsKey(), r, ok})
	}
	return r, ok
}

// try allocates the claims on an empty node of each kind until one can serve them.
func (g *GPUClaims) try(ctx context.Context, read *kubeview.DeviceSlices, claims []*resourcev1.ResourceClaim) ([]gpu.Grant, bool) {
	empty := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, n := range read.Kinds()[:min(len(read.Kinds()), maxKinds)] {
		allocator, err := structured.NewAllocator(ctx, g.features, empty, g.dra.DeviceClasses(), read.List(), g.compiled)
		if err != nil {
			return nil, false
		}
		results, err := allocator.Allocate(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name()}}, claims)
		if err != nil || len(results) != len(claims) {
			continue
		}
		var given []gpu.Grant
		for i := range results {
			given = n.Given(given, results[i].Devices.Results)
		}
		return given, true
	}
	return nil, false
}
