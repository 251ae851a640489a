package networktopology

import (
	"sync"

	"k8s.io/component-base/metrics"
	fwk "k8s.io/kube-scheduler/framework"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

var meanDistance = metrics.NewHistogramVec(&metrics.HistogramOpts{
	Subsystem: "berth_network",
	Name:      "mean_distance_microseconds",
	Help: "Mean distance, by traffic and without prices, from the node that a pod was given to the pods that it " +
		"talks to, " +
		"in microseconds for 1 MiB.",
	Buckets:        []float64{2, 5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120, 40_960},
	StabilityLevel: metrics.ALPHA,
}, []string{"profile"})

var registerMetrics = sync.OnceFunc(func() { schedulermetrics.RegisterMetrics(meanDistance) })

// observe measures the distance of the node that was chosen. Nodes are not scored where only one is left, as for a pod
// that follows the plan of its gang.
func (p *Plugin) observe(state fwk.CycleState, node string) error {
	s, err := readState[*tallyState](state, tallyKey)
	if err != nil {
		return err
	}
	if s == nil {
		r, err := readState[*relationState](state, relationKey)
		if err != nil || r == nil {
			return err
		}
		s = &tallyState{p.peers.tally(r.relation, p.find)}
	}
	if place := p.find(node); place != nil && s.Total() > 0 {
		const nanoseconds = 1000
		meanDistance.WithLabelValues(p.handle.ProfileName()).Observe(float64(s.Mean(place, p.settings.times)) / nanoseconds)
	}
	return nil
}
