// Package priceview reads what decides on cost: the price that a node states, what the node offers and what is left of
// it, how it was bought, whether a pod accepts spot capacity, and the hours in which the pod may start.
//
// The plugin CostOptimized and the tools call it. It keeps no state and writes no object, and it never computes a
// price: package price does.
package priceview

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// SetPrice states what the node costs an hour.
func SetPrice(node *v1.Node, perHour price.MicroDollars) {
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, wellknown.PricePerHourKey, strings.TrimPrefix(perHour.String(), "$"))
}
