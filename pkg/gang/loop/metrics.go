package loop

import "k8s.io/component-base/metrics"

var gangWait = metrics.NewHistogram(&metrics.HistogramOpts{
	Name: "berth_gang_wait_seconds", StabilityLevel: metrics.ALPHA,
	Help:    "Time from when a gang had enough members to when its minimum was bound.",
	Buckets: metrics.ExponentialBuckets(0.05, 2, 18)})

// Metrics are those of the room, for a registry.
func Metrics() []metrics.Registerable { return []metrics.Registerable{gangWait} }
