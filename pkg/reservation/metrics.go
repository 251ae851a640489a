package reservation

import "k8s.io/component-base/metrics"

var age = metrics.NewGauge(&metrics.GaugeOpts{
	Name: "berth_gang_reservation_age_seconds", StabilityLevel: metrics.ALPHA,
	Help: "How long capacity has been promised to the gang that has a reservation; 0 without one."})

// Metrics are those to register.
func Metrics() []metrics.Registerable { return []metrics.Registerable{age} }
