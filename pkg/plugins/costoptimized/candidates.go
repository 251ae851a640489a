package costoptimized

import (
	"context"
	"encoding/binary"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/signals"
)

var _ candidates.Ranker = &Plugin{}

// maxOffers bounds the cached views of nodes.
const maxOffers = 1024

// nodeClass is what a pod's cost depends on for a class of nodes.
type nodeClass struct {
	// view is shared by all nodes that offer the same at the same price: these are few, while there are thousands of
	// classes, so that it stays in the processor's cache.
	view *nodeView
	use  priceview.Use
}

// Candidates is how many nodes the framework is to look at, 0 for all.
func (p *Plugin) Candidates() int { return int(*p.settings.args.Candidates) }

// Class is what the node costs and what the pods on it leave.
func (p *Plugin) Class(key candidates.Key, info fwk.NodeInfo) (_ candidates.Key, class any) {
	view := p.nodes.of(info.Node())
	c := &nodeClass{view: view, use: priceview.ReadUse(&p.settings.gpuKeys, &view.offers, info,
		p.claims.Left(&view.offers, info))}
	flags := byte(0)
	for i, yes := range [...]bool{view.priced, view.leaving, view.removable} {
		if yes {
			flags |= 1 << i
		}
	}
	key.Fixed = append(append(append(key.Fixed, flags), view.capacity...), 0)
	key.Fixed = binary.AppendVarint(key.Fixed, int64(view.price))
	key.Fixed = view.offers.AppendKey(key.Fixed)
	key.All = c.use.AppendKey(key.All)
	if known, ok := p.offers.Get(string(key.Fixed)); ok {
		c.view = known.(*nodeView)
	} else {
		p.offers.Add(string(key.Fixed), view)
	}
	return key, c
}

// basis is what classes depend on apart from nodes.
type basis struct {
	prices *signals.PriceSnapshot
	// tick changes every ten seconds, because prices expire.
	tick int64
	// devices are those that are claimed.
	devices any
}

// Basis is the prices of metrics and the allocation of devices by claims.
func (p *Plugin) Basis() any {
	b := basis{devices: p.claims.Epoch()}
	if p.nodes.metrics != nil {
		b.prices, b.tick = p.nodes.metrics.Snapshot(), time.Now().Unix()/10
	}
	return b
}

// Judge judges for every pod.
func (p *Plugin) Judge(_ context.Context, state fwk.CycleState, pod *v1.Pod) candidates.Judge {
	s, err := p.podState(state, pod)
	if err != nil {
		return nil
	}
	return &judge{plugin: p, cycle: state, pod: s}
}

// judge judges classes for one pod. The state of the cycle, which PreScore writes, is read once.
type judge struct {
	plugin *Plugin
	cycle  fwk.CycleState
	pod    *podState
	state  *cycleState
}

// Refuses reports whether the nodes are of a capacity type that the pod does not accept.
func (j *judge) Refuses(class any) bool { return !j.pod.spot.Allows(class.(*nodeClass).view.capacity) }

// Score returns what the pod would cost on the nodes.
func (j *judge) Score(class any, _ fwk.NodeInfo) (int64, *fwk.Status) {
	if j.state == nil {
		state, err := readCycle(j.cycle)
		if err != nil {
			return 0, fwk.AsStatus(err)
		}
		j.state = state
	}
	c := class.(*nodeClass)
	left := use{inUse: c.use.InUse, host: c.use.Free, freeMilliGPU: func() int64 { return c.use.Free.MilliGPU }}
	return j.plugin.cost(j.pod, j.state, c.view, left), nil
}
