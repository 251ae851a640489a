package kubeview

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
)

// Assignment is which devices of which node a pod holds, and how much of each.
type Assignment struct {
	Node    string
	Devices []int
	Share   gpu.Share
	// UUIDs are those of all devices of the node in index order, where it lists them.
	UUIDs []string
}

// AssignmentOf finds the devices that a scheduler of this process has promised to a pod. It returns false for pods it
// made no promise to; their annotations count then.
type AssignmentOf func(uid types.UID) (Assignment, bool)

// Inventory counts the pods of the node in. On a shared node, pods without a device (whose promise is only simulated,
// or that another scheduler placed) are given one by the same rule by which they would be scheduled, so that the
// capacity counts right. A pod with the UID in except is left out.
func (k *GPUKeys) Inventory(g *GPUNode, info fwk.NodeInfo, promised AssignmentOf, except types.UID) *gpu.Inventory {
	inv := g.empty.Clone()
	requested := info.GetRequested()
	inv.FreeCPUMilli = info.GetAllocatable().GetMilliCPU() - requested.GetMilliCPU()
	if !inv.HasGPU() {
		return inv
	}
	inv.InUse = InUse(info)
	scalars := requested.GetScalarResources()
	for i := range inv.Slices {
		s := &inv.Slices[i]
		s.Count = max(0, s.Count-int(scalars[v1.ResourceName(s.Resource)]))
	}
	used := scalars[v1.ResourceName(inv.Resource)]
	switch {
	case inv.Mode == gpu.ModeShared:
		k.countPods(g, inv, info, promised, except)
	case inv.TimeSliced():
		inv.FreeReplicas = int(max(0, min(g.allocatable-used, maxGPUs)))
	default:
		occupyWhole(inv, g.inUse, int(min(used, maxNodeGPUs)))
	}
	return inv
}

// occupyWhole marks used devices as taken: first those that an agent saw in use, then any. The number is Kubernetes'
// own, the agent only says which; a process that no pod accounts for takes nothing here, as the kubelet would give its
// GPU away as well.
func occupyWhole(inv *gpu.Inventory, inUse []int, used int) {
	whole := gpu.Share{Milli: gpu.WholeMilli, MemMiB: inv.MemMiB}
	for _, i := range inUse {
		if used > 0 && inv.Take([]int{i}, whole) {
			used--
		}
	}
	for i := range inv.Devices {
		if used > 0 && inv.Take([]int{i}, whole) {
			used--
		}
	}
}

// countPods books the devices of every pod on a shared node.
func (k *GPUKeys) countPods(g *GPUNode, inv *gpu.Inventory, info fwk.NodeInfo, promised AssignmentOf, except types.UID) {
	var homeless []GPURequest
	for _, podInfo := range info.GetPods() {
		pod := podInfo.GetPod()
		if pod.UID == except && except != "" || !k.MayUseGPU(pod) {
			continue
		}
		request, err := k.PodGPURequest(pod)
		if err != nil || request.Count == 0 {
			continue // a pod that cannot be read was placed by somebody who does not share GPUs by our rules
		}
		if request.Resource != "" && request.Resource != inv.Resource && !request.Shared {
			continue // it has GPUs that the node offers under another name
		}
		share, ok := request.ShareOn(inv.MemMiB)
		if !ok {
			continue
		}
		if promised != nil {
			if a, ok := promised(pod.UID); ok && a.Node == g.Node.Name {
				inv.Occupy(a.Devices, a.Share)
				continue
			}
		}
		if devices := AssignedDevices(pod, g.uuids); len(devices) == request.Count && inv.CanTake(devices, share) {
			inv.Take(devices, share)
			continue
		}
		homeless = append(homeless, request)
	}
	for i := range homeless {
		place(inv, &homeless[i].Request)
	}
}

// place gives a pod the devices that it would be scheduled to; where none fits, what is left of the emptiest ones.
func place(inv *gpu.Inventory, r *gpu.Request) {
	if devices, share, ok := gpu.Choose(inv, r); ok {
		inv.Take(devices, share)
		return
	}
	share, _ := r.ShareOn(inv.MemMiB)
	order := make([]int, len(inv.Devices))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return inv.Devices[b].FreeMilli - inv.Devices[a].FreeMilli })
	inv.Occupy(order[:min(r.Count, len(order))], share)
}
