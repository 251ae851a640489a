package gpuview

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// Inventory counts the pods of the node in. On a shared node, pods without a device (whose promise is only simulated,
// or that another scheduler placed) are given one by the same rule by which they would be scheduled, so that the
// capacity counts right. A pod with the UID in except is left out.
func (k *Keys) Inventory(g *Node, info fwk.NodeInfo, promised AssignmentOf, except types.UID) *gpu.Inventory {
	inv := g.empty.Clone()
	requested := info.GetRequested()
	inv.FreeCPUMilli = info.GetAllocatable().GetMilliCPU() - requested.GetMilliCPU()
	if !inv.HasGPU() {
		return inv
	}
	inv.InUse = podview.InUse(info)
	scalars := requested.GetScalarResources()
	for i := range inv.Slices {
		s := &inv.Slices[i]
		s.Count = max(0, s.Count-int(scalars[v1.ResourceName(s.Resource)]))
	}
	used := scalars[v1.ResourceName(inv.Resource)]
	if inv.Mode == gpu.ModeDevicePlugin && g.first {
		k.countLeft(g, inv, info, promised, except)
	}
	switch {
	case inv.Mode == gpu.ModeShared:
		k.countPods(g, inv, info, promised, except)
	case inv.TimeSliced():
		inv.FreeReplicas = int(max(0, g.allocatable-used))
	default:
		inv.OccupyWhole(int(min(used, MaxGPUs)))
	}
	return inv
}

// countPods books the devices of every pod on a shared node. What a pod was promised or granted comes first, whatever
// it asks for by now. Every other pod holds what stands behind its annotations: see holdsOf.
func (k *Keys) countPods(
	g *Node, inv *gpu.Inventory, info fwk.NodeInfo, promised AssignmentOf, except types.UID,
) {
	var others []*v1.Pod
	for _, podInfo := range info.GetPods() {
		pod := podInfo.GetPod()
		if pod.UID == except && except != "" {
			continue
		}
		if a, ok := assigned(pod, g.Node.Name, promised); ok {
			inv.Occupy(a.DevicesOn(g), a.Share)
			k.noteKind(inv, pod)
		} else if k.MayUseGPU(pod) {
			others = append(others, pod)
		}
	}
	if len(others) == 0 {
		return
	}
	var homeless []gpu.Request
	for _, pod := range others {
		request, held := k.holdsOf(pod, g, inv)
		if request.Count == 0 || request.Resource != "" && request.Resource != inv.Resource && !request.Shared {
			continue // without GPUs, or with those that the node offers under another name
		}
		k.noteKind(inv, pod)
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

// countLeft books what pods were assigned while a node was shared that is not any more: its label was changed, or the
// node was deleted and has registered again. They go on to use their devices, and the kubelet does not know. Whole GPUs
// that a device plugin gave out are counted by the kubelet, unless it was HAMi's, whose units are parts of GPUs.
func (k *Keys) countLeft(g *Node, inv *gpu.Inventory, info fwk.NodeInfo, promised AssignmentOf, except types.UID) {
	for _, podInfo := range info.GetPods() {
		pod := podInfo.GetPod()
		a, ok := assigned(pod, g.Node.Name, promised)
		if !ok || pod.UID == except && except != "" {
			continue
		}
		counted := k.AsksByResource(pod)
		if counted && a.Share.Milli >= gpu.WholeMilli && !hami.answered(pod) {
			continue
		}
		inv.HoldsShares = true
		if !counted && !inv.TimeSliced() {
			inv.Occupy(a.DevicesOn(g), a.Share)
		}
	}
}

// holdsOf is what a pod holds that this scheduler has not assigned, and the devices if it was told any. A pod that is
// not on a node yet, as in a simulation, holds what it asks for, and so does any pod where annotations are trusted. Of
// others, which a tenant may have put on the node by spec.nodeName, it is what they ask for by resources.
func (k *Keys) holdsOf(pod *v1.Pod, g *Node, inv *gpu.Inventory) (r gpu.Request, held []deviceShare) {
	trusted := k.TrustAnnotations || pod.Spec.NodeName == ""
	if trusted {
		if a, ok := grantTo(pod, pod.Annotations[wellknown.GPUAssignedKey]); ok {
			for _, device := range a.DevicesOn(g) {
				held = append(held, deviceShare{device, a.Share})
			}
			return gpu.Request{Count: len(a.Devices), Milli: a.Share.Milli}, held
		}
		r = k.heldGPUs(pod)
	} else {
		r = k.backedGPUs(pod)
	}
	share, ok := inv.MostOf(&r)
	if !ok { // a share of a memory that is not known
		r = gpu.Request{Count: r.Count, Milli: gpu.WholeMilli, Resource: r.Resource, Shared: r.Shared}
		share, _ = inv.MostOf(&r)
	}
	if r.Count > 0 {
		held = told(pod, g, r.Count, share)
	}
	if !trusted && !within(held, r.Count, share) {
		held = nil
	}
	return r, held
}

// within reports whether devices and shares are no more than count shares. HAMi's list may have several containers of
// the pod on one device.
func within(held []deviceShare, count int, share gpu.Share) bool {
	milli, memMiB := 0, 0
	for _, d := range held {
		milli, memMiB = milli+d.share.Milli, memMiB+d.share.MemMiB
	}
	// Who wrote the list may have rounded up each share.
	return len(held) <= count && milli <= count*(share.Milli+1) && memMiB <= count*(share.MemMiB+1)
}

// Claimed returns keys by which annotations of pods are believed. What pods claim keeps no pod from a device that is
// needed, but of several that serve, an unclaimed one is better.
func (k *Keys) Claimed() *Keys {
	trusting := *k
	trusting.TrustAnnotations = true
	return &trusting
}

// Unassigned says what a pod claims on its node that counts for nothing: GPUs by annotations alone, which this
// scheduler did not assign. It is empty for all other pods.
func (k *Keys) Unassigned(pod *v1.Pod) string {
	if k.TrustAnnotations || pod.Spec.NodeName == "" || assignedCondition(pod) != nil {
		return ""
	}
	// Most pods have none of these annotations: what a pod asks for is read only where it matters.
	i := slices.IndexFunc(claimingAnnotations, func(key string) bool { _, has := pod.Annotations[key]; return has })
	if i < 0 || k.backedGPUs(pod).Count > 0 || k.heldGPUs(pod).Count == 0 {
		return ""
	}
	return claimingAnnotations[i]
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
func (k *Keys) noteKind(inv *gpu.Inventory, pod *v1.Pod) {
	switch {
	case inv.Agent:
	case k.AsksByResource(pod):
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
	share, _ := inv.MostOf(r)
	order := make([]int, len(inv.Devices))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return inv.Devices[b].FreeMilli - inv.Devices[a].FreeMilli })
	inv.Occupy(order[:min(r.Count, len(order))], share)
}
