package costoptimized

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/process/cycles"
)

var _ cycles.Scorer = &Plugin{}

// Terms returns what the pod would cost on the node; Score returns the sum. A node without a price has no terms, nor
// has one that comes last whatever it costs.
func (p *Plugin) Terms(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (cycles.Cost, error) {
	s, cycle, err := p.states(state, pod)
	if err != nil {
		return cycles.Cost{}, err
	}
	view := p.nodes.of(info.Node())
	if view.last(s) || !view.priced {
		return cycles.Cost{}, nil
	}
	parts := p.parts(s, cycle, view, p.nodes.use(view, info))
	return cycles.Cost{Unit: "dollars an hour", Terms: []cycles.Term{
		{Name: "share", Amount: parts.Share.Dollars(), For: "the pod's share of the node"},
		{Name: "opening", Amount: parts.Opening.Dollars(), For: "a node kept alive for this pod alone"},
		{Name: "stranded GPU", Amount: parts.Stranded.Dollars(), For: "GPUs left without CPU or memory"},
		{Name: "interruption", Amount: parts.Interruption.Dollars(), For: "work lost to interruptions"},
	}}, nil
}
