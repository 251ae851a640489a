package costoptimized

import (
	"context"
	"encoding/binary"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
)

var _ candidates.Ranker = &Plugin{}

// AppendClass appends the node's price and what the pods on it leave to be paid for.
func (p *Plugin) AppendClass(key []byte, info fwk.NodeInfo) []byte {
	view := p.nodes.of(info.Node())
	for _, yes := range [...]bool{view.priced, view.leaving, view.removable} {
		if yes {
			key = append(key, 1)
		} else {
			key = append(key, 0)
		}
	}
	key = append(append(key, view.capacity...), 0)
	key = binary.AppendVarint(key, int64(view.price))
	return p.settings.gpuKeys.AppendPricedClass(key, &view.offers, info)
}

// ClassDecides reports whether prices change with nodes only. Prices from metrics change at any time.
func (p *Plugin) ClassDecides(context.Context, fwk.CycleState, *v1.Pod) bool { return p.nodes.market.reader == nil }

// Refuses reports whether the node is of a capacity type that the pod does not accept.
func (p *Plugin) Refuses(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) bool {
	s, err := p.podState(state, pod)
	return err != nil || !s.spot.Allows(p.nodes.of(info.Node()).capacity)
}
