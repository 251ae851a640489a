package plugins_test

import (
	"math"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/apis/config"
)

func TestPricesOfMetricsFollowThoseOfNodeAndTable(t *testing.T) {
	t.Parallel()
	server := prometheus(t, func(string) map[string]string {
		const node = `"berth_reading":"node","node":`
		return map[string]string{node + `"stated"`: "8", node + `"listed"`: "8", node + `"metered"`: "4.5",
			node + `"both"`: "2", `"berth_reading":"offering","instance_type":"p5","capacity_type":"spot","zone":"z1"`: "1.5"}
	})
	synctest.Test(t, func(t *testing.T) {
		offered := []string{v1.LabelInstanceTypeStable, "p5", v1.LabelTopologyZone, "z1", karpenterLabel, "spot"}
		b := bill(t, func(a *config.CostOptimizedArgs) {
			team := []v1.NodeSelectorRequirement{{Key: "team", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}}}
			a.Prices = []config.NodePrice{{Requirements: team, PricePerHour: "6"}}
			a.PriceSource = &config.PriceSignals{Prometheus: config.Prometheus{URL: server.URL}}
			a.SetDefaults()
		}, priced("stated", "3"), priced("listed", "", "team", "a"), priced("metered", ""), priced("both", "", offered...),
			priced("offered", "", offered...), priced("unpriced", ""))
		check := func(when string, want map[string]float64) {
			t.Helper()
			got := map[string]float64{}
			for node, terms := range b.terms(t, eighth("p").Annotation(spotKey, "tolerate").Obj()) {
				got[node] = math.Round(8*terms["share"]*1000) / 1000
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("prices %s (-want +got):\n%s", when, diff)
			}
		}
		pass(10 * minute)
		check("that are fresh", map[string]float64{"stated": 3, "listed": 6, "metered": 4.5, "both": 2, "offered": 1.5})
		server.Close()
		pass(2 * hour)
		check("when metrics are too old", map[string]float64{"stated": 3, "listed": 6})
	})
}
