package preempt

import "k8s.io/component-base/metrics"

var (
	evictionSearch = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "berth_gang_eviction_search_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time that choosing pods to evict took, beside the scheduling cycles.",
		Buckets: metrics.ExponentialBuckets(0.0005, 2, 15)})
	podsPreempted = metrics.NewCounter(&metrics.CounterOpts{
		Name: "berth_gang_preempted_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods evicted for gangs, or for single pods together with gangs."})
	gangsPreempted = metrics.NewCounter(&metrics.CounterOpts{
		Name: "berth_gang_preempted_groups_total", StabilityLevel: metrics.ALPHA,
		Help: "Gangs evicted whole."})
)

// Metrics are those of the room, for a registry.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{evictionSearch, podsPreempted, gangsPreempted}
}
