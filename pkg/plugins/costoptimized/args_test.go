package costoptimized

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/wellknown"
)

func TestPricesOfNodesInOrderOfPrecedence(t *testing.T) {
	t.Parallel()
	const dollar, rates = price.Dollar, config.UnknownPriceDefaultRates
	for name, tc := range map[string]struct {
		pool, stated  string
		metered       price.MicroDollars
		unknown       config.UnknownPricePolicy
		want          price.MicroDollars
		given, priced bool
	}{
		"what a node states is final": {pool: "listed", stated: "8", want: 8 * dollar, given: true,
			priced: true},
		"a node may state that it is free": {pool: "listed", stated: "0", given: true, priced: true},
		"a price that is none counts as absent": {pool: "listed", stated: "$8", want: 3 * dollar, given: true,
			priced: true},
		"the table comes before metrics": {pool: "listed", metered: dollar, want: 3 * dollar, given: true,
			priced: true},
		"metrics come before the rates":           {metered: 4 * dollar, unknown: rates, want: 4 * dollar, priced: true},
		"the rates estimate the rest":             {unknown: rates, want: 2 * dollar, priced: true},
		"without estimates the rest has no price": {unknown: config.UnknownPriceNeutral},
	} {
		s := settings{args: &config.CostOptimizedArgs{UnknownPrice: &tc.unknown}, values: &config.CostOptimizedValues{
			Rates: price.Rates{Core: dollar},
			Prices: price.NewTable([]price.Rule{
				{Matches: func(labels map[string]string) bool { return labels["pool"] == "listed" }, Price: 3 * dollar},
			}),
		}}
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": tc.pool}}}
		if tc.stated != "" {
			node.Annotations = map[string]string{wellknown.PricePerHourKey: tc.stated}
		}
		got, given := s.given(node)
		priced := given
		if !given {
			got, priced = s.found(tc.metered, price.Capacity{MilliCPU: 2000})
		}
		if got != tc.want || given != tc.given || priced != tc.priced {
			t.Errorf("%s: %s, given %t, priced %t; want %s, %t, %t", name, got, given, priced, tc.want, tc.given, tc.priced)
		}
	}
}
