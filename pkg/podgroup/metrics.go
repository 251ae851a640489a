package podgroup

import "k8s.io/component-base/metrics"

var (
	gangsByState = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "berth_gang_groups", StabilityLevel: metrics.ALPHA,
		Help: "Gangs by state: incomplete (too few members), waiting (to be tried), unschedulable, starting, started, " +
			"degraded."}, []string{"state"})
	waitTimeouts = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "berth_sla_wait_timeouts_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods that have waited for longer than the timeout of their class."}, []string{"class"})
)

// Metrics are those to register.
func Metrics() []metrics.Registerable { return []metrics.Registerable{gangsByState, waitTimeouts} }
