package priceview

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/wellknown"
)

// NodeCostPerHourLabel is used by published examples of cost-aware schedulers; decimals are accepted.
const NodeCostPerHourLabel = "node-cost-per-hour"

// StatedPrice returns the price an hour that a node states itself: by its annotation or, without one, by the label that
// published examples use. It returns false where the node states none, and every value that cannot be used; such a
// value counts as absent.
func StatedPrice(node *v1.Node) (price.MicroDollars, bool, []*wellknown.BadValue) {
	var bad []*wellknown.BadValue
	for _, at := range []struct {
		kind, key string
		values    map[string]string
	}{
		{"annotation", wellknown.PricePerHourKey, node.Annotations},
		{"label", NodeCostPerHourLabel, node.Labels},
	} {
		value, ok := at.values[at.key]
		if !ok {
			continue
		}
		p, err := price.Parse(value)
		if err == nil {
			return p, true, bad
		}
		bad = append(bad, &wellknown.BadValue{Object: "node", Kind: at.kind, Key: at.key, Value: value,
			Allowed: price.Allowed})
	}
	return 0, false, bad
}
