package ipreservation

import (
	"k8s.io/component-base/metrics"

	"berth.dev/berth/pkg/informers"
)

var (
	used = metrics.NewDesc("berth_ip_addresses_used", "Addresses of a pool that are reserved or promised.",
		[]string{"pool", "domain"}, nil, metrics.ALPHA, "")
	free = metrics.NewDesc("berth_ip_addresses_free", "Addresses of a pool that are free.", []string{"pool", "domain"},
		nil, metrics.ALPHA, "")
)

var published = informers.NewPublished((*book).collect, used, free)

// collect tells what holds now.
func (b *book) collect(ch chan<- metrics.Metric) {
	for _, u := range b.ledger.Usages() {
		ch <- metrics.NewLazyConstMetric(used, metrics.GaugeValue, float64(u.Used), u.Pool, u.Domain.String())
		ch <- metrics.NewLazyConstMetric(free, metrics.GaugeValue, float64(u.Free), u.Pool, u.Domain.String())
	}
}
