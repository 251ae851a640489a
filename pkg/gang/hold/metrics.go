package hold

import "k8s.io/component-base/metrics"

var (
	age = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "berth_gang_reservation_age_seconds", StabilityLevel: metrics.ALPHA,
		Help: "How long capacity has been kept for the gang that has a reservation; 0 without one."})
	startError = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "berth_gang_start_error_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How far from the start that it was told first a gang started.",
		Buckets: metrics.ExponentialBuckets(15, 2, 14)})
)

// Metrics are those to register.
func Metrics() []metrics.Registerable { return []metrics.Registerable{age, startError} }
