package gpuaware

import (
	"context"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// EventsToRegister names what can make a rejected pod schedulable: a pod that gives GPUs back, a node whose GPUs suit
// the pod, a device class that serves them, and a change of the pod's own request.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{
			Event:          fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete},
			QueueingHintFn: p.afterPodDeleted,
		},
		{
			Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel |
				fwk.UpdateNodeAnnotation | fwk.UpdateNodeTaint},
			QueueingHintFn: p.afterNodeChange,
		},
		{Event: fwk.ClusterEvent{Resource: fwk.DeviceClass, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: p.afterDeviceChange},
		{Event: fwk.ClusterEvent{Resource: fwk.ResourceSlice, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: p.afterDeviceChange},
		{Event: fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Update | fwk.Delete}, QueueingHintFn: p.afterDeviceChange},
		{
			// Annotations have no action type of their own: their changes arrive as the general update.
			Event:          fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update},
			QueueingHintFn: p.afterOwnChange,
		},
	}, nil
}

func (p *Plugin) afterPodDeleted(logger klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	gone, _, err := util.As[*v1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if !p.settings.keys.MayUseGPU(gone) {
		logger.V(5).Info("Deleted pod held no GPU", "pod", klog.KObj(pod), "deletedPod", klog.KObj(gone))
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// afterDeviceChange queues pods that claims could serve: those that ask for an extended resource or bring claims.
func (p *Plugin) afterDeviceChange(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if _, err := p.settings.request(pod); err == nil && kubeview.MayClaim(pod) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// afterNodeChange queues the pod when the changed node, were it empty, could serve it, and either could not before or
// has changed in what it offers.
func (p *Plugin) afterNodeChange(logger klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	request, bad := p.settings.request(pod)
	if bad != nil {
		return fwk.QueueSkip, nil //nolint:nilerr // only a change of the pod itself helps
	}
	change := p.readChange(before, after)
	now := change.now.For(&request.Request)
	if now.Empty().Mode == gpu.ModeDRA || now.Empty().Healthy() == 0 && len(now.Empty().Slices) == 0 {
		return fwk.Queue, nil // claims may serve it
	}
	// Which GPUs are in use decides only whether those that are free are linked; how many are is counted by pods.
	linked := request.Interconnect == gpu.InterconnectRequired && request.Count > 1
	if change.sameOffer && (!linked || change.sameUse) {
		return fwk.QueueSkip, nil
	}
	if reason := gpu.Fit(now.Empty(), &request.Request); reason.Cause != gpu.Fits && !reason.Evictable() {
		logger.V(5).Info("Changed node cannot serve the pod", "pod", klog.KObj(pod), "node", klog.KObj(after), "reason", reason.String())
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// nodeChange is what has changed of a node's GPUs. It is immutable.
type nodeChange struct {
	before, after *v1.Node
	now           *kubeview.GPUNode
	// sameOffer reports that the empty node offers what it did, sameUse that the same GPUs are in use.
	sameOffer, sameUse bool
}

// readChange reads the two states of a node; before is nil for a node that is new. The queue asks once for each pending
// pod, while others wait for it, so that the answer for one event is kept until the next.
func (p *Plugin) readChange(before, after *v1.Node) *nodeChange {
	if known := p.lastChange.Load(); known != nil && known.before == before && known.after == after {
		return known
	}
	change := &nodeChange{before: before, after: after}
	change.now, _ = p.settings.keys.ReadGPUNode(after)
	if before != nil {
		then, _ := p.settings.keys.ReadGPUNode(before)
		change.sameOffer, change.sameUse = then.SameOffer(change.now), then.SameUse(change.now)
	}
	p.lastChange.Store(change)
	return change
}

func (p *Plugin) afterOwnChange(_ klog.Logger, _ *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	was, badBefore := p.settings.request(before)
	is, badAfter := p.settings.request(after)
	if badAfter != nil || badBefore == nil && reflect.DeepEqual(was, is) {
		return fwk.QueueSkip, nil //nolint:nilerr // a request that still cannot be read waits for the next change
	}
	return fwk.Queue, nil
}
