package claimview

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// Pod are the devices that have to be allocated for a pod: those of its own claims that are not allocated yet, and
// those of extended resources for which a device class stands in. It belongs to one scheduling cycle.
type Pod struct {
	state     *State
	own       []request
	resources []classResource
	// allocated are the claims that have their devices already.
	allocated []*resourcev1.ResourceClaim
	// loose reports that a node may serve the pod with fewer devices than Request says: the pod asks for all devices of
	// the node, for the first of a list, or for devices of any size or that no slice describes, or its init containers ask
	// for devices that other containers get after them.
	loose bool
	// constrained reports that claims have constraints between devices.
	constrained bool
}

// classResource is an extended resource for which a device class stands in.
type classResource struct {
	name    v1.ResourceName
	request request
}

// Pod finds what has to be allocated for a pod; nil for nothing. Claims and classes that do not exist are left to the
// allocator.
func (g *GPUs) Pod(ctx context.Context, pod *v1.Pod) *Pod {
	if g == nil || !MayClaim(pod) {
		return nil
	}
	state := g.Now()
	if state == nil {
		state = &State{read: &Slices{}}
	}
	c := &Pod{state: state}
	for _, claim := range claimsOf(pod, g.dra) {
		if claim.Status.Allocation != nil {
			c.allocated = append(c.allocated, claim)
			continue
		}
		c.constrained = c.constrained || len(claim.Spec.Devices.Constraints) > 0
		for i := range claim.Spec.Devices.Requests {
			if r := c.readRequest(ctx, g, &claim.Spec.Devices.Requests[i]); r != nil {
				c.own = append(c.own, r)
			}
		}
	}
	c.readResources(ctx, g, pod)
	if len(c.own) == 0 && len(c.allocated) == 0 && len(c.resources) == 0 {
		return nil
	}
	return c
}

// claimsOf are the pod's own claims that exist. A claim that another pod shares and is about to be bound with counts as
// allocated.
func claimsOf(pod *v1.Pod, dra fwk.SharedDRAManager) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim, err := dra.ResourceClaims().Get(pod.Namespace, *name)
		if err != nil {
			continue
		}
		if pending := dra.ResourceClaims().GetPendingAllocation(claim.UID); pending != nil && claim.Status.Allocation == nil {
			allocated := *claim
			allocated.Status.Allocation = pending
			claim = &allocated
		}
		claims = append(claims, claim)
	}
	return claims
}

// readRequest reads one request of a claim; nil if it asks for no GPU, or for administrative access only.
func (c *Pod) readRequest(ctx context.Context, g *GPUs, of *resourcev1.DeviceRequest) request {
	wanted := of.FirstAvailable
	c.loose = c.loose || len(wanted) > 1
	if e := of.Exactly; e != nil && !ptr.Deref(e.AdminAccess, false) {
		wanted = []resourcev1.DeviceSubRequest{{DeviceClassName: e.DeviceClassName, Selectors: e.Selectors,
			AllocationMode: e.AllocationMode, Count: e.Count, Tolerations: e.Tolerations, Capacity: e.Capacity}}
	}
	var r request
	for i := range wanted {
		e := &wanted[i]
		kinds := g.selected(ctx, c.state.read, e.DeviceClassName, e.Selectors)
		if len(kinds) == 0 {
			continue
		}
		count := e.Count
		if e.AllocationMode == resourcev1.DeviceAllocationModeAll {
			count, c.loose = 0, true
		}
		c.loose = c.loose || c.state.read.differ(kinds)
		r = append(r, choice{count, kinds, ptr.Deref(e.Capacity, resourcev1.CapacityRequirements{}).Requests,
			len(e.Tolerations) > 0})
	}
	return r
}

func (c *Pod) readResources(ctx context.Context, g *GPUs, pod *v1.Pod) {
	for name, q := range podview.Requests(pod) {
		class := g.classOf(name)
		if class == nil || q.Sign() <= 0 {
			continue
		}
		kinds := g.selected(ctx, c.state.read, class.Name, nil)
		c.resources = append(c.resources, classResource{name, request{{
			count: min(q.Value(), gpuview.MaxGPUs), kinds: kinds,
		}}})
		reused := slices.ContainsFunc(pod.Spec.InitContainers, func(init v1.Container) bool {
			_, asks := init.Resources.Requests[name]
			return asks
		})
		c.loose = c.loose || reused || len(kinds) == 0 || c.state.read.differ(kinds)
	}
	slices.SortFunc(c.resources, func(a, b classResource) int { return strings.Compare(string(a.name), string(b.name)) })
}

// Serves reports whether claims serve one of these resources on a node: a class stands in for it, and the kubelet
// offers none.
func (c *Pod) Serves(info fwk.NodeInfo, resources []v1.ResourceName) bool {
	return slices.ContainsFunc(c.on(info), func(r classResource) bool { return slices.Contains(resources, r.name) })
}

// on are the pod's resources that claims serve on a node.
func (c *Pod) on(info fwk.NodeInfo) []classResource {
	offered := info.GetAllocatable().GetScalarResources()
	var served []classResource
	for _, r := range c.resources {
		if offered[r.name] == 0 {
			served = append(served, r)
		}
	}
	return served
}

// requests are what has to be allocated on a node that serves these resources by claims.
func (c *Pod) requests(resources []classResource) []request {
	all := slices.Clip(c.own)
	for _, r := range resources {
		all = append(all, r.request)
	}
	return all
}

// Request is what the pod asks of GPUs: what it would get on the node with the least memory that could serve it if it
// were empty, and what it has been given. It returns false where no node could.
func (c *Pod) Request() (r gpu.Request, ok bool) {
	var given []gpu.Grant
	for _, claim := range c.allocated {
		for _, n := range c.state.read.byMemory {
			if before := len(given); len(n.given(given, claim)) > before {
				given = n.given(given, claim)
				break
			}
		}
	}
	requests := c.requests(c.resources)
	if len(requests) == 0 {
		return requestOf(given), true
	}
	for _, n := range c.state.read.byMemory {
		if more, ok := supplyOf(n, &n.empty, nil).first(requests); ok {
			return requestOf(append(given, more...)), true
		}
	}
	return gpu.Request{}, false
}

// Loose reports that a node may serve the pod with fewer devices than Request says.
func (c *Pod) Loose() bool { return c.loose }

// Offer is what a node has left for the pod, after simulated pods too, and what the allocator is likely to give of it.
// ok is false if that is not known. The inventory is nil if no node has GPUs that can be claimed.
func (c *Pod) Offer(info fwk.NodeInfo) (inventory *gpu.Inventory, given []gpu.Grant, ok bool) {
	devices := c.state.nodes[info.Node().Name]
	if devices == nil {
		if len(c.state.nodes) == 0 {
			return nil, nil, false
		}
		return (&Devices{node: &Node{}, inventory: &gpu.Inventory{Replicas: 1}}).occupied(info, 0), nil, false
	}
	resources := c.on(info)
	inventory = devices.occupied(info, devices.simulated(info, resources))
	if c.constrained {
		return inventory, nil, false
	}
	given, ok = supplyOf(devices.node, inventory, devices.used).first(c.requests(resources))
	return inventory, given, ok
}

// Devices are those of a node, nil where it has no GPUs that can be claimed.
func (c *Pod) Devices(info fwk.NodeInfo) *Devices { return c.state.Devices(info.Node().Name) }

// Claims reports whether the claim is one of the pod's own.
func Claims(pod *v1.Pod, claim *resourcev1.ResourceClaim) bool {
	return pod.Namespace == claim.Namespace &&
		slices.ContainsFunc(pod.Spec.ResourceClaims, func(c v1.PodResourceClaim) bool {
			name, _, err := resourceclaim.Name(pod, &c)
			return err == nil && name != nil && *name == claim.Name
		})
}

// Serves is a cheap test that is false only for pods for which no device is allocated.
func (g *GPUs) Serves(pod *v1.Pod) bool {
	if g == nil || !MayClaim(pod) {
		return false
	}
	for name := range podview.Requests(pod) {
		if g.classOf(name) != nil {
			return true
		}
	}
	return len(pod.Spec.ResourceClaims) > 0
}

// classOf is the class that stands in for an extended resource; nil for none.
func (g *GPUs) classOf(name v1.ResourceName) *resourcev1.DeviceClass {
	resolver := g.dra.DeviceClassResolver()
	if resolver == nil || !mayHaveClass(name) {
		return nil
	}
	// In this order, because few names have a class and the check of the name takes longer.
	class := resolver.GetDeviceClass(name)
	if class == nil || !schedutil.IsDRAExtendedResourceName(name) {
		return nil
	}
	return class
}

// MayClaim is a cheap test that is false only for pods for which no device is ever allocated.
func MayClaim(pod *v1.Pod) bool {
	asks := func(c v1.Container) bool {
		for name := range c.Resources.Requests {
			if mayHaveClass(name) {
				return true
			}
		}
		return false
	}
	return len(pod.Spec.ResourceClaims) > 0 || slices.ContainsFunc(pod.Spec.Containers, asks) ||
		slices.ContainsFunc(pod.Spec.InitContainers, asks)
}

// mayHaveClass is a cheap test that is false only for resources for which no device class stands in, such as CPU.
func mayHaveClass(name v1.ResourceName) bool { return strings.Contains(string(name), "/") }
