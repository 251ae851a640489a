package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/gpu"
)

var _ candidates.Ranker = &Plugin{}

// Candidates is how many nodes the framework is to look at, 0 for all.
func (p *Plugin) Candidates() int { return p.settings.candidates }

// AppendClass appends the node's inventory and NVLink domain.
func (p *Plugin) AppendClass(key []byte, info fwk.NodeInfo) []byte {
	v := p.cluster.views.of(p.cluster.views.Of(info.Node()), info, p.handle.SnapshotSharedLister())
	return append(v.inventory.AppendClass(key), v.node.Clique...)
}

// ClassDecides reports whether neither devices that are claimed, nor siblings on other nodes, nor measurements matter.
func (p *Plugin) ClassDecides(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod) bool {
	s, err := p.state(ctx, cycle, pod)
	return err == nil && s.claims == nil && s.siblings == nil && s.live.snapshot == nil
}

// Refuses is Filter without the reason, which would be worded for nothing.
func (p *Plugin) Refuses(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) bool {
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return true
	}
	v := p.cluster.views.of(p.cluster.views.Of(info.Node()), info, p.handle.SnapshotSharedLister())
	return gpu.Fit(p.inventory(s, info, v), &s.request.Request).Cause != gpu.Fits
}
