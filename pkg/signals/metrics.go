package signals

import (
	"sync"

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
