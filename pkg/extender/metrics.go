package extender

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	requests = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "berth_extender",
		Name:      "requests_total",
		Help: "Requests by verb (filter, prioritize) and result: done, failed (the answer is an error), " +
			"bad_request.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"verb", "result"})
	durations = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      "berth_extender",
		Name:           "request_duration_seconds",
		Help:           "Time from the first byte of a request to the last of its answer, by verb.",
		Buckets:        metrics.ExponentialBuckets(0.001, 2, 14),
		StabilityLevel: metrics.ALPHA,
	}, []string{"verb"})
	unknownNodes = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      "berth_extender",
		Name:           "unknown_nodes_total",
		Help:           "Nodes in requests that the extender did not know: it is behind, or it watches another cluster.",
		StabilityLevel: metrics.ALPHA,
	})
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(requests, durations, unknownNodes) })
