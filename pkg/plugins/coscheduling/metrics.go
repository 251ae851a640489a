package coscheduling

import (
	"sync"

	"k8s.io/component-base/metrics"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/loop"
	"berth.dev/berth/pkg/gang/preempt"
	"berth.dev/berth/pkg/gang/status"
)

// The metrics of the plugin, one set for a process as all its metrics are.
var (
	planDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name: "berth_gang_plan_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time that planning a gang took within its leader's scheduling cycle, by result: feasible or infeasible.",
		Buckets: metrics.ExponentialBuckets(0.0005, 2, 15)}, []string{"result"})
	nodesExamined = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "berth_gang_plan_nodes_examined", StabilityLevel: metrics.ALPHA,
		Help:    "Nodes that were filtered to plan a gang.",
		Buckets: metrics.ExponentialBuckets(1, 4, 9)})
	plansInvalidated = metrics.NewCounter(&metrics.CounterOpts{
		Name: "berth_gang_plans_invalidated_total", StabilityLevel: metrics.ALPHA,
		Help: "Assignments that did not hold any more when their member came to take them."})
	registerOnce sync.Once
)

// registerMetrics makes the metrics known to the scheduler's registry.
func registerMetrics() {
	registerOnce.Do(func() {
		schedulermetrics.RegisterMetrics(status.Metrics()...)
		schedulermetrics.RegisterMetrics(planDuration, nodesExamined, plansInvalidated)
		schedulermetrics.RegisterMetrics(preempt.Metrics()...)
		schedulermetrics.RegisterMetrics(loop.Metrics()...)
		schedulermetrics.RegisterMetrics(hold.Metrics()...)
		// A counter that is absent until something happens looks like one that is not there.
		for _, result := range []string{"feasible", "infeasible"} {
			planDuration.WithLabelValues(result)
		}
	})
}
