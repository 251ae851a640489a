package informers

import (
	"context"
	"testing"
	"testing/synctest"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"berth.dev/berth/test/harness/require"
)

// counted is a state with one number.
type counted struct {
	desc *metrics.Desc
	n    float64
}

func (c counted) Collect(ch chan<- metrics.Metric) {
	ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, c.n)
}

func TestMetricsAreThoseOfTheSchedulerThatRuns(t *testing.T) {
	free := metrics.NewDesc("berth_test_published_free", "Free.", nil, nil, metrics.ALPHA, "")
	p := NewPublished(free)
	values := func() []float64 {
		families, err := legacyregistry.DefaultGatherer.Gather()
		require.NoError(t, err)
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
		ctx, stopFirst := context.WithCancel(t.Context())
		p.Publish(ctx, counted{free, 1})
		if got := values(); len(got) != 1 || got[0] != 1 {
			t.Errorf("got %v, want that of the first scheduler", got)
		}
		next, stopSecond := context.WithCancel(t.Context())
		p.Publish(next, counted{free, 2})
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
