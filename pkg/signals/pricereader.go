package signals

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/apis/config"
)

// Names of the price signals in logs and metrics.
const (
	signalNodeCost      = "node_cost"
	signalOfferingPrice = "offering_price"
)

// priceLookback is how old a price sample may be for the server to give it: five minutes, the server's own default.
const priceLookback = 5 * time.Minute

// PriceReader reads prices in the background. A nil reader, which is a source that is not configured, knows nothing.
type PriceReader struct {
	client           *client
	queries          queries
	report           *reporter
	interval, maxAge time.Duration
	metrics          []config.PriceMetric

	snapshot atomic.Pointer[PriceSnapshot]
}

// StartPrices starts to read the prices that args, with defaults set and validated, ask for, until ctx ends; without
// args it returns nil. Readers are shared and errors arise as with StartGPU.
func StartPrices(ctx context.Context, factory kubeinformers.SharedInformerFactory,
	args *config.PriceSignals) (*PriceReader, error) {
	if args == nil {
		return nil, nil
	}
	return share(factory, args, func() (*PriceReader, error) {
		r, err := newPriceReader(klog.FromContext(ctx), args)
		if err != nil {
			return nil, err
		}
		go func() {
			defer r.client.close()
			every(ctx, r.interval, r.round)
		}()
		return r, nil
	})
}

func newPriceReader(logger klog.Logger, args *config.PriceSignals) (*PriceReader, error) {
	c, err := newClient(&args.Prometheus)
	if err != nil {
		return nil, err
	}
	registerMetrics()
	r := &PriceReader{
		client:   c,
		queries:  newQueries(nil, args.Prometheus.MatchLabels),
		report:   newReporter(logger, c.server),
		interval: args.Prometheus.Interval.Duration,
		maxAge:   args.MaxAge.Duration,
		metrics:  slices.Clone(args.Metrics),
	}
	r.snapshot.Store(&PriceSnapshot{maxAge: r.maxAge})
	return r, nil
}

// Snapshot returns what is known now, never nil. It is one atomic load.
func (r *PriceReader) Snapshot() *PriceSnapshot {
	if r == nil {
		return &PriceSnapshot{}
	}
	return r.snapshot.Load()
}

// round asks for all prices at once and publishes what came. A kind whose query failed keeps what it had.
func (r *PriceReader) round(ctx context.Context) {
	next := *r.Snapshot()
	var wg sync.WaitGroup
	states := make([]state, len(r.metrics))
	for i, metric := range r.metrics {
		wg.Go(func() {
			switch metric {
			case config.PriceMetricOpenCost:
				states[i] = readQuotes(ctx, r, signalNodeCost, r.queries.nodeCosts(), costNode, &next.nodes)
			case config.PriceMetricKarpenter:
				states[i] = readQuotes(ctx, r, signalOfferingPrice, r.queries.offeringPrices(), offeringOf, &next.offerings)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		// The end of the scheduler is no failure of the server.
		return
	}
	r.snapshot.Store(&next)
	r.report.report(states)
}

// readQuotes asks for one kind of prices and, where an answer comes, replaces the quotes.
func readQuotes[K comparable](ctx context.Context, r *PriceReader, signal, query string,
	keyOf func(model.Metric) (K, bool), into *quotes[K]) state {
	asked := time.Now()
	vector, err := r.client.vector(ctx, query, priceLookback)
	var dropped drops
	if err == nil {
		*into, dropped = into.update(vector, asked, r.maxAge, keyOf)
	}
	account(r.client.server, signal, time.Since(asked), dropped, err)
	newest, known := time.Time{}, 0
	for _, q := range *into {
		if asked.Sub(q.time) < r.maxAge {
			known++
		}
		if q.time.After(newest) {
			newest = q.time
		}
	}
	metricEntries.WithLabelValues(r.client.server, signal).Set(float64(known))
	if !newest.IsZero() {
		metricAge.WithLabelValues(r.client.server, signal).Set(time.Since(newest).Seconds())
	}
	return stateOf(signal, err)
}
