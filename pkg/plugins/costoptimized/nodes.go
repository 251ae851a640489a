package costoptimized

import (
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu/claimview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/signals"
)

// nodeView is what a node costs and offers. It does not change once made.
type nodeView struct {
	offers priceview.Node
	split  price.Split
	price  price.MicroDollars
	priced bool
	// fixed: set on the node or in the table, so metrics are ignored; metered: last price from metrics, 0 if none.
	fixed   bool
	metered price.MicroDollars
	// devices are the node's GPUs that can be claimed, nil for none.
	devices   *claimview.Node
	capacity  priceview.CapacityType
	leaving   bool
	removable bool
	risk      price.Interruption
}

// nodeViews keeps the view of each node while its object and its price by metrics stay the same. It is safe for
// concurrent use.
type nodeViews struct {
	*informers.ByNode[atomic.Pointer[nodeView]]
	settings *settings
	claims   *claimview.GPUs
	// metrics reads prices, nil if the profile reads none.
	metrics *signals.Reader[signals.PriceSnapshot]
}

func (v *nodeViews) of(node *v1.Node) *nodeView {
	entry := v.Of(node)
	devices := v.claims.Node(node.Name)
	if view := entry.Value.Load(); view != nil && view.devices == devices &&
		(view.fixed || view.metered == v.metered(node, view.capacity)) {
		return view
	}
	view := v.view(node)
	view.devices = devices
	entry.Value.Store(view)
	return view
}

// use is what the pods on a node leave of it. freeMilliGPU is called only if needed, because it is slow.
type use struct {
	inUse        bool
	host         price.Capacity
	freeMilliGPU func() int64
}

func (v *nodeViews) use(view *nodeView, info fwk.NodeInfo) use {
	return use{
		inUse: view.removable && podview.InUse(info), host: priceview.FreeHost(info),
		freeMilliGPU: func() int64 {
			return priceview.FreeMilliGPU(&v.settings.gpuKeys, &view.offers, info, v.claims.Left(&view.offers, info))
		},
	}
}

// metered is the node's price by metrics, 0 if unknown.
func (v *nodeViews) metered(node *v1.Node, bought priceview.CapacityType) price.MicroDollars {
	if v.metrics == nil {
		return 0
	}
	return v.metrics.Snapshot().Of(node, string(bought), time.Now())
}

func (v *nodeViews) view(node *v1.Node) *nodeView {
	s := v.settings
	view := &nodeView{
		capacity:  s.capacityRules.TypeOf(node),
		leaving:   podview.Leaving(node),
		removable: *s.args.Fleet != config.FleetStatic && podview.Removable(node),
	}
	view.risk = s.risk(view.capacity)
	view.offers = v.claims.Offer(priceview.ReadNode(&s.gpuKeys, node))
	if view.price, view.fixed = s.given(node); view.fixed {
		view.priced = true
	} else {
		view.metered = v.metered(node, view.capacity)
		view.price, view.priced = s.found(view.metered, view.offers.Allocatable)
	}
	if view.priced {
		view.split = price.NewSplit(view.price, view.offers.Allocatable, s.values.Rates)
	}
	return view
}
