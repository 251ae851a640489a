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

// Inventory is the node's inventory with its pods counted. On a shared node, pods without a device (in a simulation, or
// placed by another scheduler) get one by the rule for new pods, so that the free capacity is right. The pod with the
// UID except is left out.
func (k *Keys) Inventory(g *Node, info fwk.NodeInfo, assignments AssignmentOf, except types.UID) *gpu.Inventory {
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
		k.countLeft(g, inv, info, assignments, except)
	}
	switch {
	case inv.Mode == gpu.ModeShared:
		k.countPods(g, inv, info, assignments, except)
	case inv.TimeSliced():
		inv.FreeReplicas = int(max(0, g.allocatable-used))
	default:
		inv.OccupyWhole(int(min(used, MaxGPUs)))
	}
	return inv
}

// countPods counts the devices of every pod on a shared node. Assigned and granted devices come first, whatever the pod
// asks for by now. For the other pods see usageOf.
func (k *Keys) countPods(
	g *Node, inv *gpu.Inventory, info fwk.NodeInfo, assignments AssignmentOf, except types.UID,
) {
	var others []*v1.Pod
	for _, podInfo := range info.GetPods() {
		pod := podInfo.GetPod()
		if pod.UID == except && except != "" {
			continue
		}
		if a, ok := assigned(pod, g.Node.Name, assignments); ok {
			inv.Occupy(a.DevicesOn(g), a.Share)
			k.markInUse(inv, pod)
		} else if k.MayUseGPU(pod) {
			others = append(others, pod)
		}
	}
	if len(others) == 0 {
		return
	}
	var unplaced []gpu.Request
	for _, pod := range others {
		request, used := k.usageOf(pod, g, inv)
		if request.Count == 0 || request.Resource != "" && request.Resource != inv.Resource && !request.Shared {
			continue // without GPUs, or with those that the node offers under another name
		}
		k.markInUse(inv, pod)
		// Too many containers on a device still use it, so that the task limit does not count here.
		full := func(d deviceShare) bool { return !inv.HasFree(d.device, d.share) }
		if len(used) == 0 || slices.ContainsFunc(used, full) {
			unplaced = append(unplaced, request)
			continue
		}
		for _, d := range used {
			inv.Occupy([]int{d.device}, d.share)
		}
	}
	for i := range unplaced {
		place(inv, &unplaced[i])
	}
}

// countLeft counts the devices that pods were assigned while the node was shared, on a node that is shared no longer:
// its label was changed, or the node was deleted and has registered again. The pods continue to use their devices, and
// the kubelet does not know. Whole GPUs that a device plugin gave out are counted by the kubelet, unless the plugin was
// HAMi's, whose units are parts of GPUs.
func (k *Keys) countLeft(g *Node, inv *gpu.Inventory, info fwk.NodeInfo, assignments AssignmentOf, except types.UID) {
	for _, podInfo := range info.GetPods() {
		pod := podInfo.GetPod()
		a, ok := assigned(pod, g.Node.Name, assignments)
		if !ok || pod.UID == except && except != "" {
			continue
		}
		counted := k.AsksByResource(pod)
		if counted && a.Share.Milli >= gpu.WholeMilli && !hami.answered(pod) {
			continue
		}
		inv.SharesInUse = true
		if !counted && !inv.TimeSliced() {
			inv.Occupy(a.DevicesOn(g), a.Share)
		}
	}
}

// usageOf is what a pod uses that this scheduler has not assigned, and the devices if its annotations hold any. A pod
// that is not on a node yet, as in a simulation, uses what it asks for, and so does any pod if annotations are trusted.
// Other pods, which a tenant may have put on the node by spec.nodeName, use what they ask for by resources.
func (k *Keys) usageOf(pod *v1.Pod, g *Node, inv *gpu.Inventory) (r gpu.Request, used []deviceShare) {
	trusted := k.TrustAnnotations || pod.Spec.NodeName == ""
	if trusted {
		if a, ok := grantTo(pod, pod.Annotations[wellknown.GPUAssignedKey]); ok {
			for _, device := range a.DevicesOn(g) {
				used = append(used, deviceShare{device, a.Share})
			}
			return gpu.Request{Count: len(a.Devices), Milli: a.Share.Milli}, used
		}
		r = k.claimedGPUs(pod)
	} else {
		r = k.backedGPUs(pod)
	}
	share, ok := inv.MostOf(&r)
	if !ok { // a share of a memory that is not known
		r = gpu.Request{Count: r.Count, Milli: gpu.WholeMilli, Resource: r.Resource, Shared: r.Shared}
		share, _ = inv.MostOf(&r)
	}
	if r.Count > 0 {
		used = decodeAnswer(pod, g, r.Count, share)
	}
	if !trusted && !within(used, r.Count, share) {
		used = nil
	}
	return r, used
}

// within reports whether devices and shares are no more than count shares. HAMi's list may have several containers of
// the pod on one device.
func within(used []deviceShare, count int, share gpu.Share) bool {
	milli, memMiB := 0, 0
	for _, d := range used {
		milli, memMiB = milli+d.share.Milli, memMiB+d.share.MemMiB
	}
	// The writer of the list may have rounded up each share.
	return len(used) <= count && milli <= count*(share.Milli+1) && memMiB <= count*(share.MemMiB+1)
}

// Claimed returns keys that trust annotations. A device that a pod only claims to use may be given to another pod, but
// an unclaimed device is better.
func (k *Keys) Claimed() *Keys {
	trusting := *k
	trusting.TrustAnnotations = true
	return &trusting
}

// Unassigned is the annotation by which a pod on a node claims GPUs that do not count for it, because this scheduler
// did not assign them and the pod does not ask for them by resources. It is empty for all other pods.
func (k *Keys) Unassigned(pod *v1.Pod) string {
	if k.TrustAnnotations || pod.Spec.NodeName == "" || assignedCondition(pod) != nil {
		return ""
	}
	// Most pods have none of these annotations, and need not be read.
	i := slices.IndexFunc(claimingAnnotations, func(key string) bool { _, has := pod.Annotations[key]; return has })
	if i < 0 || k.backedGPUs(pod).Count > 0 || k.claimedGPUs(pod).Count == 0 {
		return ""
	}
	return claimingAnnotations[i]
}

// assigned are the devices that this process has assigned to the pod on the node, or that the pod was granted.
func assigned(pod *v1.Pod, node string, assignments AssignmentOf) (Assignment, bool) {
	if assignments != nil {
		if a, ok := assignments(pod.UID); ok && a.Node == node {
			return a, true
		}
	}
	return Granted(pod)
}

// markInUse notes for a node without an agent whether the kubelet gave the pod whole GPUs or the pod uses shares.
func (k *Keys) markInUse(inv *gpu.Inventory, pod *v1.Pod) {
	switch {
	case inv.Agent != gpu.AgentNone:
	case k.AsksByResource(pod):
		inv.WholeInUse = true
	default:
		inv.SharesInUse = true
	}
}

// place gives a pod the devices that a new pod would get; if none fits, what is left of the emptiest ones.
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
