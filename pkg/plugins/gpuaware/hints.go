package gpuaware

import (
	"context"
	"maps"
	"reflect"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/claimview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// EventsToRegister names what can make a rejected pod schedulable: a pod that gives GPUs back, a node whose GPUs suit
// the pod, a device class that serves them, and a change of the pod's own request.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		process.On(fwk.AssignedPod, fwk.Delete, p.afterPodDeleted),
		process.On(fwk.Node, fwk.Add|fwk.UpdateNodeAllocatable|fwk.UpdateNodeLabel|fwk.UpdateNodeAnnotation|
			fwk.UpdateNodeTaint, p.afterNodeChange),
		process.On(fwk.DeviceClass, fwk.Add|fwk.Update, p.afterClassChange),
		process.On(fwk.ResourceSlice, fwk.Add|fwk.Update, p.afterSliceChange),
		process.On(fwk.ResourceClaim, fwk.Update|fwk.Delete, p.afterClaimChange),
		process.On(fwk.TargetPod, process.OwnChange, p.afterOwnChange),
	}, nil
}

func (p *Plugin) afterPodDeleted(_, gone, _ *v1.Pod) bool { return p.shared.mayUseGPU(gone) }

// afterClassChange queues pods that the class may serve. The cache of classes by resource handles the same event and
// may be behind, so that it is not asked.
func (p *Plugin) afterClassChange(pod *v1.Pod, _, _ *resourcev1.DeviceClass) bool {
	return claimview.MayClaim(pod) && p.readable(pod)
}

// afterSliceChange queues pods that claims serve.
func (p *Plugin) afterSliceChange(pod *v1.Pod, _, _ *resourcev1.ResourceSlice) bool {
	return p.shared.claims.Serves(pod) && p.readable(pod)
}

// afterClaimChange queues pods that claims serve when a claim gives its devices back, and the pod whose claim has
// changed.
func (p *Plugin) afterClaimChange(pod *v1.Pod, before, after *resourcev1.ResourceClaim) bool {
	gaveBack := before != nil && before.Status.Allocation != nil && (after == nil || after.Status.Allocation == nil)
	return (gaveBack && p.shared.claims.Serves(pod) || after != nil && claimview.Claims(pod, after)) && p.readable(pod)
}

// readable reports whether the pod's request can be read. If not, only a change of the pod itself helps.
func (p *Plugin) readable(pod *v1.Pod) bool {
	_, bad := p.settings.request(pod)
	return bad == nil
}

// afterNodeChange queues the pod if the changed node could serve it when empty, and offers other GPUs than before or
// newly admits the pod.
func (p *Plugin) afterNodeChange(pod *v1.Pod, before, after *v1.Node) bool {
	request, bad := p.settings.request(pod)
	if bad != nil {
		return false // only a change of the pod itself helps
	}
	change := p.readChange(before, after)
	now := change.now.For(&request.Request)
	offersNone := now.Empty().Mode == gpu.ModeDRA || now.Empty().Healthy() == 0 && len(now.Empty().Slices) == 0
	if offersNone && p.shared.claims.Serves(pod) && p.shared.claims.Recent().Devices(after.Name) != nil {
		return true
	}
	if change.sameOffer && (change.sameAdmission || !newlyAdmits(pod, before, after)) {
		return false
	}
	reason := gpu.Fit(now.Empty(), &request.Request)
	return reason.Cause == gpu.Fits || reason.Evictable()
}

// nodeChange is what has changed of a node's GPUs. It is immutable.
type nodeChange struct {
	before, after *v1.Node
	now           *gpuview.Node
	// sameOffer reports that the node offers the same GPUs as before, and sameAdmission that it has the same labels,
	// taints and cordon.
	sameOffer, sameAdmission bool
}

// readChange reads the two states of a node; before is nil for a new node. The queue calls it under its lock for each
// pending pod, so that the result is kept for the next pod.
func (p *Plugin) readChange(before, after *v1.Node) *nodeChange {
	if known := p.lastChange.Load(); known != nil && known.before == before && known.after == after {
		return known
	}
	change := &nodeChange{before: before, after: after}
	change.now, _ = p.settings.keys.ReadGPUNode(after)
	if before != nil {
		then, _ := p.settings.keys.ReadGPUNode(before)
		change.sameOffer = then.SameOffer(change.now)
		change.sameAdmission = maps.Equal(before.Labels, after.Labels) &&
			before.Spec.Unschedulable == after.Spec.Unschedulable &&
			apiequality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	}
	p.lastChange.Store(change)
	return change
}

// afterOwnChange queues a pod that asks for something else. A request that still cannot be read waits for the next
// change.
func (p *Plugin) afterOwnChange(_, before, after *v1.Pod) bool {
	was, badBefore := p.settings.request(before)
	is, badAfter := p.settings.request(after)
	return badAfter == nil && (badBefore != nil || !reflect.DeepEqual(was, is))
}

// newlyAdmits reports that a node whose labels, taints or cordon have changed may take the pod after evictions, and
// could not before.
//
// GPUAware runs before the stock filters, so that a full node counts as refused by GPUAware alone even if these would
// refuse it too. Preemption runs all filters and fails while the stock ones refuse. Their events do not wake the pod,
// because they are not known to have refused it.
func newlyAdmits(pod *v1.Pod, before, after *v1.Node) bool {
	if before == nil || ptr.Deref(pod.Spec.PreemptionPolicy, v1.PreemptLowerPriority) == v1.PreemptNever ||
		!podview.Admits(after, pod) {
		return false
	}
	return !podview.Admits(before, pod) || hasVolumes(pod) && moved(before, after)
}

func hasVolumes(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return false
}

// moved reports whether the node is in another zone or region, by which volumes choose.
func moved(before, after *v1.Node) bool {
	return before.Labels[v1.LabelTopologyZone] != after.Labels[v1.LabelTopologyZone] ||
		before.Labels[v1.LabelTopologyRegion] != after.Labels[v1.LabelTopologyRegion]
}
