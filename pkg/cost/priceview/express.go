package priceview

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/wellknown"
)

// SetSpot makes the node one that may be taken away, by the first rule that says so.
func (rules CapacityRules) SetSpot(node *v1.Node) {
	for _, r := range rules {
		if r.Type == Spot {
			value := append(slices.Concat(r.Values, r.Contains), "true")[0]
			metav1.SetMetaDataLabel(&node.ObjectMeta, r.Label, value)
			return
		}
	}
}

// SetPrice states what the node costs an hour.
func SetPrice(node *v1.Node, perHour price.MicroDollars) {
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, wellknown.PricePerHourKey, strings.TrimPrefix(perHour.String(), "$"))
}

// SetSpotPolicy says how a pod stands to spot capacity.
func SetSpotPolicy(pod *v1.Pod, policy SpotPolicy) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wellknown.SpotKey, string(policy))
}
