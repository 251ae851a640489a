package costoptimized

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/claimview"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/priceview"
)

// nodeView is what is known of a node in terms of money. It does not change once made.
type nodeView struct {
	offers priceview.Node
	split  price.Split
	price  price.MicroDollars
	priced bool
	// fixed: set on the node or in the table, so metrics are ignored; metered: last price from metrics, 0 if none.
	fixed   bool
	metered price.MicroDollars
	// devices is the number of the state of the node's GPUs that can be claimed, 0 for none.
	devices   uint64
	capacity  priceview.CapacityType
	leaving   bool
	removable bool
	risk      price.Interruption
}

// nodeViews keeps the view of each node while its object and the price that metrics tell stay the same. Safe for concurrent
// use.
type nodeViews struct {
	*informers.ByNode[atomic.Pointer[nodeView]]
	settings *settings
	claims   *claimview.GPUs
	market   market
}

func (v *nodeViews) of(node *v1.Node) *nodeView {
	entry := v.Of(node)
	devices := v.claims.NodeNumber(node.Name)
	if view := entry.Value.Load(); view != nil && view.devices == devices && (view.fixed || view.metered == v.market.price(node)) {
		return view
	}
	view := v.settings.view(node, v.market, v.claims)
	view.devices = devices
	entry.Value.Store(view)
	return view
}

// freeGPU is how much GPU the node of a view still offers.
func (v *nodeViews) freeGPU(view *nodeView, info fwk.NodeInfo) int64 {
	return priceview.FreeMilliGPU(&v.settings.gpuKeys, &view.offers, info, v.claims.Left(&view.offers, info))
}

func (s *settings) view(node *v1.Node, metrics market, claims *claimview.GPUs) *nodeView {
	view := &nodeView{
		capacity:  s.capacityRules.TypeOf(node),
		leaving:   podview.Leaving(node),
		removable: !s.static && podview.Removable(node),
	}
	view.risk = s.interruptions[view.capacity]
	view.offers = claims.Offer(priceview.ReadNode(&s.gpuKeys, node))
	if view.price, view.fixed = s.givenPrice(node); view.fixed {
		view.priced = true
	} else {
		view.metered = metrics.price(node)
		view.price, view.priced = s.foundPrice(node, view.metered, view.offers.Allocatable)
	}
	if view.priced {
		view.split = price.NewSplit(view.price, view.offers.Allocatable, s.rates)
	}
	return view
}

// givenPrice is the price that the node itself states or else that of the table in the args. What the node states is
// final; other prices are adjusted by the table.
func (s *settings) givenPrice(node *v1.Node) (price.MicroDollars, bool) {
	if p, ok, _ := priceview.StatedPrice(node); ok {
		return p, true
	}
	if p, ok := s.table.Price(node.Labels); ok {
		return s.table.Adjust(p, node.Labels), true
	}
	return 0, false
}

// foundPrice is the price of a node without a given one: what metrics tell or else, where the args say so, that of the
// default rates.
func (s *settings) foundPrice(node *v1.Node, metered price.MicroDollars, allocatable price.Capacity) (price.MicroDollars, bool) {
	if metered > 0 {
		return s.table.Adjust(metered, node.Labels), true
	}
	if s.unknownPrice == config.UnknownPriceDefaultRates {
		return s.table.Adjust(s.rates.Price(allocatable), node.Labels), true
	}
	return 0, false
}

// GivenPrices returns what nodes cost as they themselves say or the args of a profile, without metrics, and the rates by which a
// price is divided over resources.
func GivenPrices(args *config.CostOptimizedArgs, profile string) (func(*v1.Node) (price.MicroDollars, bool), price.Rates, error) {
	s, err := readArgs(args, profile)
	if err != nil {
		return nil, price.Rates{}, err
	}
	return func(node *v1.Node) (price.MicroDollars, bool) {
		if p, ok := s.givenPrice(node); ok {
			return p, true
		}
		return s.foundPrice(node, 0, priceview.ReadNode(&s.gpuKeys, node).Allocatable)
	}, s.rates, nil
}
