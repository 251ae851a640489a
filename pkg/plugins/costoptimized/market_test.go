package costoptimized

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/price"
)

// priceServer answers queries for prices by node and by offering as a Prometheus does.
func priceServer(t *testing.T, byNode map[string]string, offering string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("parsing query: %v", err)
		}
		var samples []string
		if strings.Contains(r.Form.Get("query"), "node_total_hourly_cost") {
			for name, dollars := range byNode {
				samples = append(samples, fmt.Sprintf(`{"metric":{"node":%q},"value":[%d,%q]}`, name, time.Now().Unix(), dollars))
			}
		} else {
			samples = append(samples, fmt.Sprintf(`{"metric":{"instance_type":"p5","capacity_type":"spot","zone":"z1"},"value":[%d,%q]}`, time.Now().Unix(), offering))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestPricesOfMetricsFollowThoseOfNodeAndTable(t *testing.T) {
	t.Parallel()
	server := priceServer(t, map[string]string{"stated": "7", "listed": "7", "metered": "4.5", "both": "2"}, "1.5")
	offered := []string{v1.LabelInstanceTypeStable, "p5", v1.LabelTopologyZone, "z1", "karpenter.sh/capacity-type", "spot"}
	objects := []runtime.Object{
		node("stated", "3"), node("listed", "", "team", "a"), node("metered", ""), node("both", "", offered...),
		node("offered", "", offered...), node("unpriced", ""),
	}
	now := clocktesting.NewFakeClock(time.Now())
	c := newClusterAt(t, now, func(a *config.CostOptimizedArgs) {
		a.Prices = []config.NodePrice{{Requirements: []v1.NodeSelectorRequirement{{Key: "team", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}}}, PricePerHour: new(string)}}
		*a.Prices[0].PricePerHour = "6"
		a.PriceSource = &config.PriceSignals{Prometheus: config.Prometheus{URL: server.URL}}
		config.SetDefaultsCostOptimizedArgs(a)
	}, objects)
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		m := c.plugin.nodes.market
		return m.price(objects[2].(*v1.Node)) > 0 && m.price(objects[4].(*v1.Node)) > 0, nil
	})
	if err != nil {
		t.Fatalf("waiting for prices: %v", err)
	}
	check := func(when string, want map[string]price.MicroDollars) {
		t.Helper()
		for _, o := range objects {
			n := o.(*v1.Node)
			view := c.plugin.nodes.of(n)
			if amount, known := want[n.Name]; view.priced != known || view.price != amount {
				t.Errorf("%s, node %s: price %s, known %v, want %s, known %v", when, n.Name, view.price, view.priced, amount, known)
			}
		}
	}
	check("fresh", map[string]price.MicroDollars{
		"stated": 3_000_000, "listed": 6_000_000, "metered": 4_500_000, "both": 2_000_000, "offered": 1_500_000})
	now.Step(2 * time.Hour)
	check("when metrics are too old", map[string]price.MicroDollars{"stated": 3_000_000, "listed": 6_000_000})
}
