package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
)

// PreFilter reads the pod once for the whole cycle. A pod whose request cannot be read stays pending, and its event says
// which key is wrong. Filter is skipped for a pod that fits any node as far as GPUs go.
func (p *Plugin) PreFilter(_ context.Context, cycle fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	s, err := p.read(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	cycle.Write(stateKey, s)
	if !s.request.WantsGPU() && !s.request.NeedsGPUNode {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// PreFilterExtensions returns nil: PreFilter keeps nothing that depends on other pods.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter refuses nodes that cannot serve the pod's GPU request now, with one reason.
func (p *Plugin) Filter(_ context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	s, err := p.state(cycle, pod)
	if err != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	v := p.cluster.views.of(info, p.handle.SnapshotSharedLister())
	if p.servedByClaims(s, info, v) {
		return nil
	}
	reason := gpu.Fit(s.live.inventory(v), &s.request.Request)
	switch {
	case reason.Cause == gpu.Fits:
		return nil
	case reason.Evictable():
		return fwk.NewStatus(fwk.Unschedulable, reason.String())
	default:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason.String())
	}
}

// servedByClaims reports whether dynamic resource allocation turns the pod's request for the extended resource into a
// claim on this node: the kubelet offers none of it there, and a device class stands in for it.
func (p *Plugin) servedByClaims(s *podState, info fwk.NodeInfo, v *view) bool {
	return s.draClass != "" && v.inventory.Leaving == "" && info.GetAllocatable().GetScalarResources()[v1.ResourceName(s.request.Resource)] == 0
}
