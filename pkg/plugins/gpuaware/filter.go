package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
)

// PreFilter reads the pod once for the whole cycle. A pod whose request cannot be read stays pending, and its event
// says which key is wrong. Filter is skipped for a pod that fits any node as far as GPUs go.
func (p *Plugin) PreFilter(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod,
	_ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	s, err := p.read(ctx, pod)
	if err != nil {
		return nil, rejection(err)
	}
	cycle.Write(stateKey, s)
	if s.claims == nil && !s.request.WantsGPU() && !s.request.NeedsGPUNode && s.request.MinNodeCPUMilli == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// PreFilterExtensions returns nil: PreFilter keeps nothing that depends on other pods.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// CountsOnNodes implements clusterwide.NodeCounter.
func (*Plugin) CountsOnNodes() {}

// Filter refuses nodes that cannot serve the pod's GPU request now, with one reason.
func (p *Plugin) Filter(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return rejection(err)
	}
	place, state := p.cluster.views.Of(info.Node()), p.cluster.views.state(info, s.claims)
	if number, ok := s.fits.load(place.Index, state); ok {
		return p.refusals.status(number)
	}
	var reason gpu.Reason
	if s.claims.serves(info) {
		if reason, err = s.claims.fit(ctx, info, &s.request.Request); err != nil {
			return s.claims.unanswered(ctx, info, &s.request.Request, err)
		}
	} else {
		v := p.cluster.views.of(place, info, p.handle.SnapshotSharedLister())
		if reason = gpu.Fit(s.live.inventory(v.of(&s.request.Request)), &s.request.Request); reason.Cause != gpu.Fits {
			p.noteFault(ctx, s, pod, v)
		}
	}
	number, ok := p.refusals.number(reason)
	if !ok {
		return newRefusal(reason).status()
	}
	s.fits.store(place.Index, state, number)
	return p.refusals.status(number)
}
