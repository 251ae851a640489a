package kubeview

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
)

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

// occupyWhole marks used devices as taken: first those that an agent saw in use. The number is Kubernetes' own, the agent
// only says which; a process that no pod accounts for takes nothing here, as the kubelet would give its GPU away as well.
// What pods hold beyond that was given out later, or there is no agent: the best connected set is what the device plugin
// prefers.
func occupyWhole(inv *gpu.Inventory, inUse []int, used int) {
	whole := gpu.Share{Milli: gpu.WholeMilli, MemMiB: inv.MemMiB}
	for _, i := range inUse {
		if used > 0 && inv.Take([]int{i}, whole) {
			used--
		}
	}
	used = min(used, inv.FreeWhole())
	if devices, share, ok := gpu.Choose(inv, &gpu.Request{Count: used, Milli: gpu.WholeMilli}); ok {
		inv.Take(devices, share)
	}
}

// countPods books the devices of every pod on a shared node: what it was promised or granted, whatever it asks for by
// now; else what it was told in a dialect; else what it asks for.
func (k *GPUKeys) countPods(
	g *GPUNode, inv *gpu.Inventory, info fwk.NodeInfo, promised AssignmentOf, except types.UID,
) {
	var homeless []gpu.Request
	for _, podInfo := range info.GetPods() {
		pod := podInfo.GetPod()
		if pod.UID == except && except != "" {
			continue
		}
		if a, ok := assigned(pod, g.Node.Name, promised); ok {
			inv.Occupy(a.DevicesOn(g), a.Share)
			k.noteKind(inv, pod)
			continue
		}
		if !k.MayUseGPU(pod) {
			continue
		}
		request := k.heldGPUs(pod)
		if request.Count == 0 || request.Resource != "" && request.Resource != inv.Resource && !request.Shared {
			continue // without GPUs, or with those that the node offers under another name
		}
		k.noteKind(inv, pod)
		share, ok := request.ShareOn(inv.MemMiB)
		if !ok { // a share of a memory that is not known
			request = gpu.Request{Count: request.Count, Milli: gpu.WholeMilli}
			share, _ = request.ShareOn(inv.MemMiB)
		}
		held := told(pod, g, request.Count, share)
		// Too many containers on a device are a fault of who placed them: they use it all the same.
		full := func(d deviceShare) bool { return !inv.HasFree(d.device, d.share) }
		if len(held) == 0 || slices.ContainsFunc(held, full) {
			homeless = append(homeless, request)
			continue
		}
		for _, d := range held {
			inv.Occupy([]int{d.device}, d.share)
		}
	}
	for i := range homeless {
		place(inv, &homeless[i])
	}
}

// assigned is what the pod was promised or granted on the node.
func assigned(pod *v1.Pod, node string, promised AssignmentOf) (Assignment, bool) {
	if promised != nil {
		if a, ok := promised(pod.UID); ok && a.Node == node {
			return a, true
		}
	}
	return Granted(pod)
}

// noteKind notes whether the kubelet gave the pod its GPUs or the pod found its own, where nothing keeps the two apart.
func (k *GPUKeys) noteKind(inv *gpu.Inventory, pod *v1.Pod) {
	switch {
	case inv.Agent:
	case k.asksByResource(pod):
		inv.HoldsWhole = true
	default:
		inv.HoldsShares = true
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
