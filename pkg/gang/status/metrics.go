package status

import "k8s.io/component-base/metrics"

var (
	gangsByState = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "berth_gang_groups", StabilityLevel: metrics.ALPHA,
		Help: "Gangs by state: incomplete (too few members), waiting (to be tried), unschedulable, starting, started, " +
			"degraded."}, []string{"state"})
	waitTimeouts = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "berth_sla_wait_timeouts_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods that have waited for longer than the timeout of their class."}, []string{"class"})
	missedDeadlines = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "berth_sla_missed_deadlines_total", StabilityLevel: metrics.ALPHA,
		Help: "Deadlines that could not be kept any more while the work waited, by what they are of: pod, gang."},
		[]string{"of"})
)

// ofPod and ofGang are the values of the label.
const (
	ofPod  = "pod"
	ofGang = "gang"
)

// Metrics are those to register.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{gangsByState, waitTimeouts, missedDeadlines}
}
