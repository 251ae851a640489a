package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/process/informers"
)

// Reader reads from one server in the background, into immutable snapshots. A nil reader stands for a source that is
// not configured, and knows nothing.
type Reader[S any] struct {
	client   *client
	logger   klog.Logger
	read     readFunc[S]
	snapshot atomic.Pointer[S]
	// reported is the last trouble in the log.
	reported string
}

// readFunc queries the server and updates the next snapshot, which begins as a copy of the last.
type readFunc[S any] func(ctx context.Context, r *round, next *S)

func newReader[S any](logger klog.Logger, args *config.Prometheus, first S, read readFunc[S]) (*Reader[S], error) {
	c, err := newClient(args)
	if err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", args.URL, err)
	}
	registerMetrics()
	r := &Reader[S]{client: c, logger: logger, read: read}
	r.snapshot.Store(&first)
	return r, nil
}

// start returns the scheduler's reader for these args, made at the first call and started when the nodes are known: the
// same plugin is made once for each profile, and profiles with the same args need the server asked only once.
func start[S any](ctx context.Context, factory kubeinformers.SharedInformerFactory, args any, server *config.Prometheus,
	known cache.InformerSynced, first S, read readFunc[S]) (*Reader[S], error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("comparing args: %w", err)
	}
	return informers.SharedBy(factory, string(encoded), func() (*Reader[S], error) {
		r, err := newReader(klog.FromContext(ctx), server, first, read)
		if err != nil {
			return nil, err
		}
		go r.run(ctx, known, server.Interval.Duration)
		return r, nil
	})
}

// run runs rounds until ctx ends, once an interval, counted from start to start. The first begins when the nodes are
// known: a round before would find none that a series could be about, and the next is an interval away, in which a GPU
// known to be faulty would be given out.
func (r *Reader[S]) run(ctx context.Context, known cache.InformerSynced, interval time.Duration) {
	defer r.client.connections.CloseIdleConnections()
	if !cache.WaitForCacheSync(ctx.Done(), known) {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		r.round(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// round publishes what comes. A signal whose query fails keeps what it had.
func (r *Reader[S]) round(ctx context.Context) {
	next, now := *r.snapshot.Load(), &round{client: r.client}
	r.read(ctx, now, &next)
	if ctx.Err() != nil {
		// The scheduler ends; the server has not failed.
		return
	}
	r.snapshot.Store(&next)
	r.report(now)
}

// Snapshot returns what is known now, never nil. It is one atomic load.
func (r *Reader[S]) Snapshot() *S {
	if r == nil {
		return new(S)
	}
	return r.snapshot.Load()
}

// report logs one line if the trouble differs from that of the last call.
func (r *Reader[S]) report(now *round) {
	trouble := strings.Join(now.failing, ",")
	if trouble == "" && now.uncovered {
		trouble = "uncovered"
	}
	if trouble == r.reported {
		return
	}
	r.reported = trouble
	switch {
	case now.err != nil:
		r.logger.Error(now.err,
			"Reading live signals fails; what was read before counts until it is too old, then scheduling goes on without",
			"server", r.client.server, "failing", trouble)
	case now.uncovered:
		r.logger.Info("Live signals are off for all nodes because too few GPU nodes have a fresh sample",
			"server", r.client.server, "nodesWithSample", now.covered, "gpuNodes", now.nodes)
	default:
		r.logger.Info("All live signals are read again", "server", r.client.server)
	}
}

// round is one round of queries to a server, with its failures.
type round struct {
	client  *client
	failing []string
	// err is the error of the first signal that fails.
	err error
	// uncovered is set if too few of the nodes have a sample that counts.
	uncovered      bool
	covered, nodes int
}

// ask asks for a signal. take keeps the answer to the query, which was asked at that time of the scheduler's clock, and
// returns how many of its samples it drops. It is not called if there is no usable answer.
func (r *round) ask(ctx context.Context, signal, query string, want model.ValueType, lookback time.Duration,
	take func(answer model.Value, asked time.Time) (dropped int)) {
	asked, dropped := time.Now(), 0
	answer, err := r.client.query(ctx, query, want, lookback)
	if err == nil {
		dropped = take(answer, asked)
	} else {
		metricFailures.WithLabelValues(r.client.server, signal).Inc()
		if r.failing = append(r.failing, signal); r.err == nil {
			r.err = err
		}
	}
	metricDropped.WithLabelValues(r.client.server, signal).Add(float64(dropped))
}

// knows records what is known of a signal: the number of entries, and the time of the newest, zero for none.
func (r *round) knows(signal string, entries int, newest time.Time) {
	metricEntries.WithLabelValues(r.client.server, signal).Set(float64(entries))
	if !newest.IsZero() {
		metricAge.WithLabelValues(r.client.server, signal).Set(time.Since(newest).Seconds())
	}
}

// Labels of the metrics: the server asked, and the signal.
var metricLabels = []string{"server", "signal"}

var (
	metricAge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: metricSubsystem, Name: "age_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Age of the newest sample of a live signal at the end of the last round of queries.",
	}, metricLabels)
	metricEntries = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: metricSubsystem, Name: "entries", StabilityLevel: metrics.ALPHA,
		Help: "Nodes or prices that the signal knows something about.",
	}, metricLabels)
	metricFailures = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: metricSubsystem, Name: "query_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Queries for a live signal that brought no usable answer.",
	}, metricLabels)
	metricDropped = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: metricSubsystem, Name: "dropped_samples_total", StabilityLevel: metrics.ALPHA,
		Help: "Samples of a live signal that were dropped: they name no known node or GPU, or the value is no reading.",
	}, metricLabels)
)

const metricSubsystem = "berth_signal"

// registerMetrics puts the metrics on the endpoint of the scheduler, once a process.
var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(metricAge, metricEntries, metricFailures, metricDropped)
})
