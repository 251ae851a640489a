package claimview

import (
	"math"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
)

// held is how much of the device claims hold, in thousandths of the device, and the memory that they hold of it. The
// memory is -1 where it is as much of the device's as of its compute.
func (d *claimDevice) held(allocated *structured.AllocatedState) (milli, memMiB int) {
	if allocated.AllocatedDevices.Has(d.id) {
		return gpu.WholeMilli, -1
	}
	if d.capacity == nil {
		return 0, 0
	}
	consumed, ok := allocated.AggregatedCapacity[d.id]
	if !ok {
		return 0, 0
	}
	used := make(amounts, len(consumed))
	for name, q := range consumed {
		used.set(strings.TrimPrefix(string(name), d.id.Driver.String()+"/"), q)
	}
	return d.share(used)
}

// share is how much of the device these amounts are.
func (d *claimDevice) share(used amounts) (milli, memMiB int) {
	if milli = used.milliOf(d.capacity); used[amountMemory] > 0 {
		return milli, used.memMiB()
	}
	return milli, -1
}

// of is the share of its GPU that a part of a device is.
func (p claimPart) of(milli, memMiB int) gpu.Share {
	s := gpu.Share{Milli: int(math.Ceil(float64(p.milli*milli) / gpu.WholeMilli)), MemMiB: memMiB}
	if memMiB < 0 {
		s.MemMiB = p.memMiB * milli / gpu.WholeMilli
	}
	return s
}

// Inventory counts what is allocated.
func (n *Node) Inventory(allocated *structured.AllocatedState) *gpu.Inventory {
	inv := n.empty.Clone()
	for i := range n.devices {
		d := &n.devices[i]
		milli, memMiB := d.held(allocated)
		if milli == 0 {
			continue
		}
		if d.slice != "" {
			takeSlice(inv, d)
			continue
		}
		for _, p := range d.parts {
			inv.Occupy([]int{p.gpu}, p.of(milli, memMiB))
		}
	}
	return inv
}

func takeSlice(inv *gpu.Inventory, d *claimDevice) {
	for i := range inv.Slices {
		if s := &inv.Slices[i]; s.Resource == d.slice && !d.tainted && s.Count > 0 {
			s.Count--
		}
	}
}

// Stamp is equal for states of the node that are alike: the same slices with the same allocations.
func (n *Node) Stamp(allocated *structured.AllocatedState) uint64 {
	return stampOf(n.number, len(n.devices), func(i int) structured.DeviceID { return n.devices[i].id }, allocated)
}

// GPUNode is the node with the GPUs that claims can have, without any that are allocated.
func (n *Node) GPUNode(g *gpuview.Node) *gpuview.Node {
	return g.WithDevices(n.empty, n.uuids)
}

// Occupied adds to an inventory what the NodeInfo knows: free CPU, and pods that ask for the resources but whose
// devices are not allocated, because they are only simulated.
func (n *Node) Occupied(inv *gpu.Inventory, info fwk.NodeInfo, simulated int) *gpu.Inventory {
	inv.CPUMilli = info.GetAllocatable().GetMilliCPU()
	inv.FreeCPUMilli = inv.CPUMilli - info.GetRequested().GetMilliCPU()
	inv.Leaving, inv.InUse = podview.LeavingTaint(info.Node()), podview.InUse(info)
	inv.OccupyWhole(simulated)
	return inv
}

// Simulated is how many units of the resources pods on the node ask for beyond the devices that are allocated.
func (n *Node) Simulated(info fwk.NodeInfo, resources []ClassResource, allocated *structured.AllocatedState) int {
	requested := int64(0)
	for i := range resources {
		requested += info.GetRequested().GetScalarResources()[resources[i].name]
	}
	if requested == 0 {
		return 0
	}
	taken := int64(0)
	for i := range n.devices {
		milli, _ := n.devices[i].held(allocated)
		switch {
		case milli > 0 && n.devices[i].capacity != nil:
			return 0 // by how many pods is not known
		case milli > 0:
			taken++
		}
	}
	return int(min(max(0, requested-taken), gpuview.MaxGPUs))
}

// Given adds the GPUs that an allocation gives.
func (n *Node) Given(list []gpu.Grant, results []resourcev1.DeviceRequestAllocationResult) []gpu.Grant {
	for i := range results {
		r := &results[i]
		at, ok := n.byID[structured.MakeDeviceID(r.Driver, r.Pool, r.Device)]
		if !ok || r.AdminAccess != nil && *r.AdminAccess {
			continue
		}
		d := &n.devices[at]
		milli, memMiB := gpu.WholeMilli, -1
		if d.capacity != nil && len(r.ConsumedCapacity) > 0 {
			milli, memMiB = d.share(consumedOf(r.Driver, r.ConsumedCapacity))
		}
		for _, p := range d.parts {
			grant := gpu.Grant{Device: p.gpu, Share: p.of(milli, memMiB), Slice: d.slice}
			if d.slice == "" {
				grant.Model, grant.MemMiB = n.gpus[p.gpu].product, n.gpus[p.gpu].memMiB
			}
			list = append(list, grant)
		}
	}
	return list
}
