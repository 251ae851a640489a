package costoptimized

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/priceview"
)

var (
	clusterCost = metrics.NewDesc("berth_cluster_cost_dollars_per_hour",
		"Price of all nodes by the prices of a profile, by type of capacity.", []string{"profile", "capacity_type"}, nil,
		metrics.ALPHA, "")
	inUseCost = metrics.NewDesc("berth_nodes_in_use_cost_dollars_per_hour",
		"Price of the nodes that some pod keeps from being given back.", []string{"profile"}, nil, metrics.ALPHA, "")
	idleGPUCost = metrics.NewDesc("berth_idle_gpu_cost_dollars_per_hour",
		"Price of the GPUs that no pod has.", []string{"profile"}, nil, metrics.ALPHA, "")
	strandedGPUCost = metrics.NewDesc("berth_stranded_gpu_cost_dollars_per_hour",
		"Price of the idle GPUs that no pod can use for want of CPU or memory on their nodes.", []string{"profile"}, nil,
		metrics.ALPHA, "")
	spotShare = metrics.NewDesc("berth_spot_cost_ratio",
		"Share of the price of all nodes that is spot capacity.", []string{"profile"}, nil, metrics.ALPHA, "")
	unpricedNodes = metrics.NewDesc("berth_nodes_without_price",
		"Nodes whose price no source knows.", []string{"profile"}, nil, metrics.ALPHA, "")
)

// billCollector makes a bill for each profile when it is asked, so that metrics that are not read cost nothing.
type billCollector struct {
	metrics.BaseStableCollector

	mu        sync.Mutex
	byProfile map[string]*biller
}

var (
	bills         = &billCollector{byProfile: map[string]*biller{}}
	registerBills = sync.OnceFunc(func() { legacyregistry.CustomMustRegister(bills) })
)

// publish offers the bills of a profile as metrics until ctx ends.
func (c *billCollector) publish(ctx context.Context, profile string, b *biller) {
	c.mu.Lock()
	c.byProfile[profile] = b
	c.mu.Unlock()
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.byProfile[profile] == b { // another scheduler of this process may have the name by now
			delete(c.byProfile, profile)
		}
	})
}

// DescribeWithStability names the metrics.
func (c *billCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{clusterCost, inUseCost, idleGPUCost, strandedGPUCost, spotShare, unpricedNodes} {
		ch <- d
	}
}

// CollectWithStability makes the bills.
func (c *billCollector) CollectWithStability(ch chan<- metrics.Metric) {
	c.mu.Lock()
	billers := maps.Clone(c.byProfile)
	c.mu.Unlock()
	for _, profile := range slices.Sorted(maps.Keys(billers)) {
		b, err := billers[profile].bill()
		if err != nil {
			klog.Background().Error(err, "Making the bill of the cluster", "profile", profile)
			continue
		}
		gauge := func(d *metrics.Desc, value float64, labels ...string) {
			ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, append([]string{profile}, labels...)...)
		}
		for _, t := range priceview.CapacityTypes() {
			gauge(clusterCost, b.byCapacity[t].Dollars(), string(t))
		}
		gauge(inUseCost, b.inUse.Dollars())
		gauge(idleGPUCost, b.idleGPU.Dollars())
		gauge(strandedGPUCost, b.strandedGPU.Dollars())
		gauge(unpricedNodes, float64(b.unpriced))
		if total := b.total(); total > 0 {
			gauge(spotShare, b.byCapacity[priceview.Spot].Dollars()/total.Dollars())
		}
	}
}
