package rights

import (
	"sync"

	"k8s.io/component-base/metrics"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

var (
	missingRights = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "berth_right_missing", StabilityLevel: metrics.ALPHA,
		Help: "Rights that this configuration needs and the scheduler's account lacks: 1 for each. Absent when none is " +
			"missing.",
	}, []string{"resource", "verb", "weight", "feature"})
	registerOnce sync.Once
)

func registerMetrics() { registerOnce.Do(func() { schedulermetrics.RegisterMetrics(missingRights) }) }
