package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/gpu"
)

var (
	_ candidates.Ranker  = &Plugin{}
	_ candidates.Sampler = &Plugin{}
)

// Candidates is how many nodes the framework is to look at, 0 for all.
func (p *Plugin) Candidates() int { return int(*p.settings.args.Candidates) }

// Class is the node's inventories.
func (p *Plugin) Class(key candidates.Key, info fwk.NodeInfo) (_ candidates.Key, class any) {
	v := p.view(info)
	key.All = v.inventory.AppendKey(key.All)
	for _, other := range v.others {
		key.All = other.AppendKey(append(key.All, 0))
	}
	return key, v
}

// Basis is the allocation of devices by claims, which may change without an event of the node. Judge returns nil for
// pods whose judgement depends on anything else that changes over time.
func (p *Plugin) Basis() any { return p.shared.claims.Epoch() }

// Judge returns nil where devices that are claimed, or measurements matter.
func (p *Plugin) Judge(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod) candidates.Judge {
	s, err := p.state(ctx, cycle, pod)
	if err != nil || s.claims != nil || s.live.snapshot != nil {
		return nil
	}
	return &judge{ctx: ctx, plugin: p, cycle: cycle, pod: pod, state: s}
}

// SampleDoes reports whether the pod asks for no GPU. One that does goes to the best of all nodes.
func (p *Plugin) SampleDoes(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod) bool {
	s, err := p.state(ctx, cycle, pod)
	return err == nil && !s.request.WantsGPU()
}

// judge judges inventories for one pod.
type judge struct {
	ctx    context.Context
	plugin *Plugin
	cycle  fwk.CycleState
	pod    *v1.Pod
	state  *podState
}

// Refuses is Filter without the message, which would not be used.
func (j *judge) Refuses(class any) bool {
	inventory, _ := class.(*view).of(&j.state.request.Request)
	return gpu.Fit(inventory, &j.state.request.Request).Cause != gpu.Fits
}

// Score is the score of the plugin.
func (j *judge) Score(_ any, member fwk.NodeInfo) (int64, *fwk.Status) {
	return j.plugin.Score(j.ctx, j.cycle, j.pod, member)
}
