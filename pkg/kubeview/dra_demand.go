package kubeview

import (
	"context"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"berth.dev/berth/pkg/gpu"
)

// maxKinds is how many kinds of nodes are tried to find out what claims ask for.
const maxKinds = 16

// GPUNode is the node with the GPUs that its slices describe; the node as it was read where there are none, or where the
// kubelet offers GPUs, so that none is counted twice.
func (g *GPUClaims) GPUNode(node *GPUNode) *GPUNode {
	if g == nil {
		return node
	}
	if n := g.slices.Load().node(node); n != nil {
		return n.gpuNode(node)
	}
	return node
}

// node is what slices say of a node whose kubelet offers no GPUs.
func (c *claimSlices) node(g *GPUNode) *claimNode {
	if g.empty.Mode != gpu.ModeDRA && (len(g.empty.Devices) > 0 || len(g.empty.Slices) > 0) {
		return nil
	}
	return c.nodes[g.Node.Name]
}

// Demand is what a pod with these claims asks of GPUs: what the allocator gives it on the first kind of node that could
// serve it if it were empty, or gave it where all is allocated. Claims are known only with all their conditions, and
// these only by trying. It returns false where no node could serve them.
func (g *GPUClaims) Demand(ctx context.Context, c *PodClaims) (r gpu.Request, ok bool) {
	if g == nil || c == nil {
		return r, false
	}
	read, err := g.readSlices()
	if err != nil || len(read.nodes) == 0 {
		return r, false
	}
	type known struct {
		kinds   string
		request gpu.Request
		ok      bool
	}
	if k, found := g.demands.Get(c.shape); found && c.shape != "" && len(c.allocated) == 0 && k.(known).kinds == read.kindsKey {
		return k.(known).request, k.(known).ok
	}
	var given []gpu.Grant
	for _, claim := range c.allocated {
		for _, n := range read.nodes {
			before := len(given)
			if given = n.given(given, claim.Status.Allocation.Devices.Results); len(given) > before {
				break
			}
		}
	}
	ok = true
	if claims := c.claims(c.resources); len(claims) > 0 {
		var more []gpu.Grant
		more, ok = g.try(ctx, read, claims)
		given = append(given, more...)
	}
	r = requestOf(given)
	if c.shape != "" && len(c.allocated) == 0 {
		g.demands.Add(c.shape, known{read.kindsKey, r, ok})
	}
	return r, ok
}

// try allocates the claims on an empty node of each kind until one can serve them.
func (g *GPUClaims) try(ctx context.Context, read *claimSlices, claims []*resourcev1.ResourceClaim) ([]gpu.Grant, bool) {
	empty := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, n := range read.kinds[:min(len(read.kinds), maxKinds)] {
		allocator, err := structured.NewAllocator(ctx, g.features, empty, g.dra.DeviceClasses(), read.list, g.compiled)
		if err != nil {
			return nil, false
		}
		results, err := allocator.Allocate(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, claims)
		if err != nil || len(results) != len(claims) {
			continue
		}
		var given []gpu.Grant
		for i := range results {
			given = n.given(given, results[i].Devices.Results)
		}
		return given, true
	}
	return nil, false
}

// requestOf sums up what is given as equal shares of so many GPUs.
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
