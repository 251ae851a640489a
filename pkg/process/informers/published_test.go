package informers

import (
	"context"
	"testing"
	"testing/synctest"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

func TestMetricsAreThoseOfTheSchedulerThatRuns(t *testing.T) {
	free := metrics.NewDesc("berth_test_published_free", "Free.", nil, nil, metrics.ALPHA, "")
	p := NewPublished(func(n *int, ch chan<- metrics.Metric) {
		ch <- metrics.NewLazyConstMetric(free, metrics.GaugeValue, float64(*n))
	}, free)
	values := func() []float64 {
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var values []float64
		for _, f := range families {
			if f.GetName() == "berth_test_published_free" {
				for _, m := range f.GetMetric() {
					values = append(values, m.GetGauge().GetValue())
				}
			}
		}
		return values
	}
	synctest.Test(t, func(t *testing.T) {
		first, second := 1, 2
		ctx, stopFirst := context.WithCancel(t.Context())
		p.Publish(ctx, &first)
		if got := values(); len(got) != 1 || got[0] != 1 {
			t.Errorf("got %v, want that of the first scheduler", got)
		}
		next, stopSecond := context.WithCancel(t.Context())
		p.Publish(next, &second)
		stopFirst()
		synctest.Wait()
		if got := values(); len(got) != 1 || got[0] != 2 {
			t.Errorf("got %v when the first has ended, want that of the second", got)
		}
		stopSecond()
		synctest.Wait()
		if got := values(); len(got) != 0 {
			t.Errorf("got %v when both have ended, want none", got)
		}
	})
}
