package costoptimized

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/signals"
)

// market is what metrics say that nodes cost. Without a reader it knows no price.
type market struct {
	reader *signals.PriceReader
	rules  priceview.CapacityRules
}

// price returns the price of the node itself or else that of its offering, 0 where neither is known: metrics of 0 are
// no prices.
func (m market) price(node *v1.Node) price.MicroDollars {
	if m.reader == nil {
		return 0
	}
	prices, now := m.reader.Snapshot(), time.Now()
	if perHour, ok := prices.Node(node.Name, now); ok {
		return perHour
	}
	perHour, _ := prices.Offering(signals.Offering(m.rules.OfferingOf(node)), now)
	return perHour
}
