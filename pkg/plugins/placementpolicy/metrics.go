package placementpolicy

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	licensesUsed = metrics.NewDesc("berth_licenses_used", "Licenses that pods hold, by rule.",
		[]string{"policy", "rule", "license"}, nil, metrics.ALPHA, "")
	licenseLimit = metrics.NewDesc("berth_licenses_limit", "Licenses that there are, by rule.",
		[]string{"policy", "rule", "license"}, nil, metrics.ALPHA, "")
	policyCount = metrics.NewDesc("berth_placement_policies",
		"Placement policies by whether all of their rules can be evaluated.", []string{"accepted"}, nil, metrics.ALPHA, "")
)

// collector tells of a scheduler's book when it is asked.
type collector struct {
	metrics.BaseStableCollector

	book atomic.Pointer[book]
}

var (
	published = &collector{}
	register  = sync.OnceFunc(func() { legacyregistry.CustomMustRegister(published) })
)

// publish offers the book as metrics until ctx ends.
func (c *collector) publish(ctx context.Context, b *book) {
	register()
	c.book.Store(b)
	context.AfterFunc(ctx, func() { c.book.CompareAndSwap(b, nil) })
}

// DescribeWithStability lists the metrics.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- licensesUsed
	ch <- licenseLimit
	ch <- policyCount
}

// CollectWithStability tells what holds now.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	b := c.book.Load()
	if b == nil {
		return
	}
	v := b.view.Load()
	if v == nil {
		return
	}
	for accepted, n := range map[string]int{"true": len(v.policies) - v.rejected(), "false": v.rejected()} {
		ch <- metrics.NewLazyConstMetric(policyCount, metrics.GaugeValue, float64(n), accepted)
	}
	set, used := b.ledger.Used()
	if set == nil {
		return
	}
	for i, limit := range set.Limits() {
		ch <- metrics.NewLazyConstMetric(licensesUsed, metrics.GaugeValue, float64(used[i]), limit.Policy, limit.Rule,
			limit.License)
		ch <- metrics.NewLazyConstMetric(licenseLimit, metrics.GaugeValue, float64(limit.Count), limit.Policy, limit.Rule,
			limit.License)
	}
}
