package claimview

import (
	"math"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// Devices are a node's devices at one moment. They are immutable: every change makes another object.
type Devices struct {
	node *Node
	// used is what is allocated of each device.
	used []usage
	// inventory counts what is allocated. It lacks what only a NodeInfo has.
	inventory *gpu.Inventory
}

// usage is the part of a device that is allocated, in thousandths of the device, and the memory in MiB. The memory is
// -1 if it is the same part of the device's memory.
type usage struct{ milli, memMiB int }

var wholeDevice = usage{gpu.WholeMilli, -1}

// devicesAfter counts what is allocated on the node; the devices are the same where nothing has changed since before.
func (n *Node) devicesAfter(before *Devices, allocated *structured.AllocatedState) *Devices {
	used := make([]usage, 0, 64) // on the stack for most nodes
	for i := range n.devices {
		used = append(used, n.devices[i].usage(allocated))
	}
	if before != nil && before.node == n && slices.Equal(before.used, used) {
		return before
	}
	inventory := n.empty.Clone()
	for i, u := range used {
		if u.milli > 0 {
			n.devices[i].occupy(inventory, u)
		}
	}
	return &Devices{n, slices.Clone(used), inventory}
}

// Inventory counts what is allocated.
func (n *Node) Inventory(allocated *structured.AllocatedState) *gpu.Inventory {
	return n.devicesAfter(nil, allocated).inventory
}

// usage is what is allocated of the device.
func (d *claimDevice) usage(allocated *structured.AllocatedState) usage {
	if allocated.AllocatedDevices.Has(d.id) {
		return wholeDevice
	}
	consumed, ok := allocated.AggregatedCapacity[d.id]
	if !ok || d.capacity == nil {
		return usage{}
	}
	return d.share(amountsOf(d.id.Driver.String(), consumed,
		func(_ resourcev1.QualifiedName, q *resource.Quantity) resource.Quantity { return *q }))
}

// share is the part of the device that these amounts are.
func (d *claimDevice) share(a amounts) usage {
	u := usage{a.milliOf(d.capacity), -1}
	if a[amountMemory] > 0 {
		u.memMiB = a.memMiB()
	}
	return u
}

// of is the share of the part's GPU for a usage of the device.
func (p claimPart) of(u usage) gpu.Share {
	s := gpu.Share{Milli: int(math.Ceil(float64(p.milli*u.milli) / gpu.WholeMilli)), MemMiB: u.memMiB}
	if u.memMiB < 0 {
		s.MemMiB = p.memMiB * u.milli / gpu.WholeMilli
	}
	return s
}

// occupy subtracts a usage of the device from the inventory.
func (d *claimDevice) occupy(inv *gpu.Inventory, u usage) {
	for i := range inv.Slices {
		if s := &inv.Slices[i]; s.Resource == d.slice && !d.tainted && s.Count > 0 {
			s.Count--
		}
	}
	for _, p := range d.parts {
		inv.Occupy([]int{p.gpu}, p.of(u)) // nothing if the GPU is unknown
	}
}

// grants appends the GPUs behind a usage of the device.
func (n *Node) grants(list []gpu.Grant, d *claimDevice, u usage) []gpu.Grant {
	for _, p := range d.parts {
		grant := gpu.Grant{Device: p.gpu, Share: p.of(u), Slice: d.slice}
		if d.slice == "" {
			grant.Model, grant.MemMiB = n.gpus[p.gpu].product, n.gpus[p.gpu].memMiB
		}
		list = append(list, grant)
	}
	return list
}

// given appends the GPUs that are allocated to a claim.
func (n *Node) given(list []gpu.Grant, claim *resourcev1.ResourceClaim) []gpu.Grant {
	if claim.Status.Allocation == nil {
		return list
	}
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		at, ok := n.byID[structured.MakeDeviceID(r.Driver, r.Pool, r.Device)]
		if !ok || ptr.Deref(r.AdminAccess, false) {
			continue
		}
		u := wholeDevice
		if d := &n.devices[at]; d.capacity != nil && len(r.ConsumedCapacity) > 0 {
			u = d.share(amountsOf(r.Driver, r.ConsumedCapacity,
				func(_ resourcev1.QualifiedName, q resource.Quantity) resource.Quantity { return q }))
		}
		list = n.grants(list, &n.devices[at], u)
	}
	return list
}

// MilliOf is the compute of GPUs that is allocated to the claim, in milli-GPU.
func (c *Slices) MilliOf(claim *resourcev1.ResourceClaim) int64 {
	if claim.Status.Allocation == nil {
		return 0
	}
	nodes := sets.Set[*Node]{}
	for _, r := range claim.Status.Allocation.Devices.Results {
		nodes.Insert(c.byPool[pool{r.Driver, r.Pool}]...)
	}
	milli := 0
	for n := range nodes {
		for _, grant := range n.given(nil, claim) {
			milli += grant.Share.Milli
		}
	}
	return int64(milli)
}

// GPUNode is the node with the GPUs that claims can have, without any that are allocated.
func (n *Node) GPUNode(g *gpuview.Node) *gpuview.Node {
	return g.WithDevices(n.empty, n.uuids)
}

// GPUNode is the node with the GPUs that claims can have, without any that are allocated.
func (d *Devices) GPUNode(g *gpuview.Node) *gpuview.Node { return d.node.GPUNode(g) }

// occupied is the inventory with what the NodeInfo has: free CPU, and a number of simulated pods' devices, which are
// not allocated.
func (d *Devices) occupied(info fwk.NodeInfo, simulated int) *gpu.Inventory {
	inv := d.inventory.Clone()
	inv.CPUMilli = info.GetAllocatable().GetMilliCPU()
	inv.FreeCPUMilli = inv.CPUMilli - info.GetRequested().GetMilliCPU()
	inv.Leaving, inv.InUse = podview.LeavingTaint(info.Node()), podview.InUse(info)
	inv.OccupyWhole(simulated)
	return inv
}

// simulated is how many units of the resources pods on the node ask for beyond the devices that are allocated.
func (d *Devices) simulated(info fwk.NodeInfo, resources []classResource) int {
	requested := int64(0)
	for i := range resources {
		requested += info.GetRequested().GetScalarResources()[resources[i].name]
	}
	taken := int64(0)
	for i, u := range d.used {
		switch {
		case u.milli > 0 && d.node.devices[i].capacity != nil:
			return 0 // by how many pods is not known
		case u.milli > 0:
			taken++
		}
	}
	return int(min(max(0, requested-taken), gpuview.MaxGPUs))
}
