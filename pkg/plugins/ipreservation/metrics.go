package ipreservation

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	used = metrics.NewDesc("berth_ip_addresses_used", "Addresses of a pool that are reserved or promised.",
		[]string{"pool", "domain"}, nil, metrics.ALPHA, "")
	free = metrics.NewDesc("berth_ip_addresses_free", "Addresses of a pool that are free.", []string{"pool", "domain"},
		nil, metrics.ALPHA, "")
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
	ch <- used
	ch <- free
}

// CollectWithStability tells what holds now.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	b := c.book.Load()
	if b == nil {
		return
	}
	for _, u := range b.ledger.Usages() {
		ch <- metrics.NewLazyConstMetric(used, metrics.GaugeValue, float64(u.Used), u.Pool, u.Domain.String())
		ch <- metrics.NewLazyConstMetric(free, metrics.GaugeValue, float64(u.Free), u.Pool, u.Domain.String())
	}
}
