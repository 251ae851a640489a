package signals

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Labels of the metrics: the server asked, and the signal.
var metricLabels = []string{"server", "signal"}

var (
	metricAge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: metricSubsystem, Name: "age_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Age of the newest sample of a live signal at the end of the last round of queries.",
	}, metricLabels)
	metricCoverage = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: metricSubsystem, Name: "coverage_ratio", StabilityLevel: metrics.ALPHA,
		Help: "Share of the GPU nodes that have a sample of the signal that counts. Below the configured minimum the " +
			"signal is off for all nodes.",
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
		Help: "Samples of a live signal that were dropped, by reason.",
	}, []string{"server", "signal", "reason"})
	metricDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: metricSubsystem, Name: "query_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time that a query for a live signal took, its failure included.",
		Buckets: metrics.ExponentialBuckets(0.005, 2, 12),
	}, metricLabels)
)

const metricSubsystem = "berth_signal"

// registerMetrics puts the metrics on the endpoint of the scheduler, once a process.
var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(metricAge, metricCoverage, metricEntries, metricFailures, metricDropped, metricDuration)
})

// account records how a query went.
func account(server, signal string, took time.Duration, dropped drops, err error) {
	metricDuration.WithLabelValues(server, signal).Observe(took.Seconds())
	if err != nil {
		metricFailures.WithLabelValues(server, signal).Inc()
	}
	for reason, n := range dropped {
		metricDropped.WithLabelValues(server, signal, reason).Add(float64(n))
	}
}
