package tools_test

import (
	"testing"
	"time"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/signals"
)

func priceArgs(url string) *config.PriceSignals {
	args := &config.PriceSignals{Prometheus: soon(url)}
	config.SetDefaultsPriceSignals(args)
	return args
}

func startPrices(t *testing.T, args *config.PriceSignals) *signals.PriceReader {
	t.Helper()
	r, err := signals.StartPrices(t.Context(), newFactory(), args)
	if err != nil {
		t.Fatalf("starting the reader: %v", err)
	}
	return r
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
	spot := signals.Offering{InstanceType: "g4dn.xlarge", CapacityType: "spot", Zone: "eu-west-1a"}
	reads(t, func() string {
		if _, ok := r.Snapshot().Node("a", time.Now()); !ok {
			return "no price of node a"
		}
		if _, ok := r.Snapshot().Offering(spot, time.Now()); !ok {
			return "no price of the spot offering"
		}
		return ""
	})

	check := func(when string, now time.Time) {
		t.Helper()
		for node, want := range map[string]price.MicroDollars{"a": 32_772_600, "b": 526_000} {
			if got, ok := r.Snapshot().Node(node, now); !ok || got != want {
				t.Errorf("%s, price of node %s: %s, known %v, want %s", when, node, got, ok, want)
			}
		}
		for _, node := range []string{"free", "unknown", "negative", "huge", "runs-opencost", ""} {
			if got, ok := r.Snapshot().Node(node, now); ok {
				t.Errorf("%s, price of node %q: %s, want unknown", when, node, got)
			}
		}
		if got, ok := r.Snapshot().Offering(spot, now); !ok || got != 157_800 {
			t.Errorf("%s, price of %v: %s, known %v, want $0.1578", when, spot, got, ok)
		}
		if got, ok := r.Snapshot().Offering(signals.Offering{InstanceType: "sold-out", CapacityType: "spot",
			Zone: "eu-west-1a"}, now); ok {
			t.Errorf("%s, price of an offering priced at nothing: %s, want unknown", when, got)
		}
	}
	check("while the server runs", time.Now())

	server.stop()
	server.failsAgain(t, "prices")
	check("after the server's end", time.Now())
	if got, ok := r.Snapshot().Node("a", time.Now().Add(time.Hour)); ok {
		t.Errorf("price of node a after maxAge: %s, want unknown", got)
	}
}
