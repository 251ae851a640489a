package tools_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/signals"
)

func priceArgs(url string) *config.PriceSignals {
	args := &config.PriceSignals{Prometheus: soon(url)}
	config.SetDefaultsPriceSignals(args)
	return args
}

func startPrices(t *testing.T, args *config.PriceSignals) *signals.Reader[signals.PriceSnapshot] {
	t.Helper()
	r, err := signals.StartPrices(t.Context(), newFactory(), args)
	if err != nil {
		t.Fatalf("starting the reader: %v", err)
	}
	return r
}

// offered is a node that was bought as an instance type.
func offered(name, instanceType string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		v1.LabelInstanceTypeStable: instanceType, v1.LabelTopologyZone: "eu-west-1a"}}}
}

func TestPricesAreReadFromARealPrometheusAndOutliveIt(t *testing.T) {
	t.Parallel()
	openCost := startExporter(t,
		`node_total_hourly_cost{instance="a",node="a",instance_type="p4d.24xlarge",region="eu-west-1"} 32.7726`,
		`node_total_hourly_cost{instance="b",node="b",instance_type="g4dn.xlarge",region="eu-west-1"} 0.526`,
		`node_total_hourly_cost{instance="free",node="free"} 0`,
		`node_total_hourly_cost{instance="unknown",node="unknown"} NaN`,
		`node_total_hourly_cost{instance="negative",node="negative"} -1`,
		`node_total_hourly_cost{instance="huge",node="huge"} 1e18`,
	)
	karpenter := startExporter(t,
		`karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="spot",instance_type="g4dn.xlarge",zone="eu-west-1a"} 0.1578`,
		`karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="on-demand",instance_type="g4dn.xlarge",zone="eu-west-1a"} 0.526`,
		`karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="spot",instance_type="sold-out",zone="eu-west-1a"} 0`,
	)
	// The scraped target of OpenCost has a node label of its own, so that Prometheus renames the one of the price.
	server := startPrometheus(t, openCost.job("opencost", "node: runs-opencost")+karpenter.job("karpenter", ""), "", "")
	r := startPrices(t, priceArgs(server.url))
	spot := offered("new", "g4dn.xlarge")
	reads(t, func() string {
		if r.Snapshot().Of(offered("a", ""), "spot", time.Now()) == 0 {
			return "no price of node a"
		}
		if r.Snapshot().Of(spot, "spot", time.Now()) == 0 {
			return "no price of the spot offering"
		}
		return ""
	})

	check := func(when string, now time.Time) {
		t.Helper()
		for node, want := range map[*v1.Node]price.MicroDollars{
			offered("a", ""): 32_772_600, offered("b", ""): 526_000, spot: 157_800,
			// Metrics of these are no prices.
			offered("free", ""): 0, offered("unknown", ""): 0, offered("negative", ""): 0, offered("huge", ""): 0,
			offered("runs-opencost", ""): 0, offered("", ""): 0, offered("new", "sold-out"): 0,
		} {
			if got := r.Snapshot().Of(node, "spot", now); got != want {
				t.Errorf("%s, price of node %q, a %q: %s, want %s", when, node.Name, node.Labels[v1.LabelInstanceTypeStable],
					got, want)
			}
		}
	}
	check("while the server runs", time.Now())

	server.stop()
	server.failsAgain(t, "prices")
	check("after the server's end", time.Now())
	if got := r.Snapshot().Of(offered("a", ""), "spot", time.Now().Add(time.Hour)); got != 0 {
		t.Errorf("price of node a after maxAge: %s, want unknown", got)
	}
}
