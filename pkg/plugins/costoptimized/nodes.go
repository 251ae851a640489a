package costoptimized

import (
	"sync"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/price"
)

// nodeView is what a node's object says about money. It does not change once made.
type nodeView struct {
	node      *v1.Node // the object it was made from
	offers    kubeview.PricedNode
	split     price.Split
	priced    bool
	capacity  kubeview.CapacityType
	leaving   bool
	removable bool
	risk      price.Interruption
}

// nodeViews keeps the view of each node while its object stays the same: objects in the scheduler's snapshot are never
// changed, only replaced. Safe for concurrent use.
type nodeViews struct {
	settings *settings
	byName   sync.Map // node name → *nodeView
}

func (v *nodeViews) of(node *v1.Node) *nodeView {
	if cached, ok := v.byName.Load(node.Name); ok {
		if view := cached.(*nodeView); view.node == node {
			return view
		}
	}
	view := v.settings.view(node)
	v.byName.Store(node.Name, view)
	return view
}

func (v *nodeViews) forget(name string) { v.byName.Delete(name) }

func (s *settings) view(node *v1.Node) *nodeView {
	view := &nodeView{
		node:      node,
		capacity:  s.capacityRules.TypeOf(node),
		leaving:   kubeview.Leaving(node),
		removable: !s.static && kubeview.Removable(node),
	}
	view.risk = s.interruptions[view.capacity]
	view.offers = s.gpuKeys.ReadPricedNode(node)
	if p, ok := s.priceOf(node, view.offers.Allocatable); ok {
		view.priced = true
		view.split = price.NewSplit(p, view.offers.Allocatable, s.rates)
	}
	return view
}

// priceOf takes a node's price from the first source that has one: the node itself, the table in the args, and, where
// the args say so, the default rates. What the node states is final; other prices are adjusted by the table.
func (s *settings) priceOf(node *v1.Node, allocatable price.Capacity) (price.MicroDollars, bool) {
	if p, ok, _ := kubeview.StatedPrice(node); ok {
		return p, true
	}
	if p, ok := s.table.Price(node.Labels); ok {
		return s.table.Adjust(p, node.Labels), true
	}
	if s.unknownPrice == config.UnknownPriceDefaultRates {
		return s.table.Adjust(s.rates.Price(allocatable), node.Labels), true
	}
	return 0, false
}
