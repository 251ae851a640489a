package candidates

import (
	"sync"

	"k8s.io/component-base/metrics"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// outcome is whether the framework was given candidates, and else why not.
type outcome string

const (
	restricted outcome = "restricted"
	// sampled: the framework was given a sample, as large as kube-scheduler's own.
	sampled outcome = "sampled"
	// fewNodes: the cluster is hardly larger than the number of candidates.
	fewNodes outcome = "few_nodes"
	// nominated: the pod has a nominated node, which is tried first.
	nominated outcome = "nominated"
	// podGroup: a native group is scheduled as a whole, and needs nodes for all of its pods.
	podGroup outcome = "pod_group"
	// chosen: a PreFilter plugin has chosen the nodes.
	chosen outcome = "chosen_by_plugin"
	// notByClass: a plugin of ours reads more of nodes than their class.
	notByClass outcome = "more_than_class"
	// otherScore: a plugin scores nodes by more than their class, and a sample is not enough.
	otherScore outcome = "other_score"
	// noneFits: no node passes, so that users need the reasons of all nodes.
	noneFits outcome = "none_fits"
	// failed: a plugin returned an error, which the framework shall meet itself.
	failed outcome = "error"
)

var cycles = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: "berth_candidates",
	Name:      "cycles_total",
	Help: "Scheduling cycles of pods by profile and outcome: restricted to the best nodes, or why all nodes " +
		"were looked at.",
	StabilityLevel: metrics.ALPHA,
}, []string{"profile", "outcome"})

var registerMetrics = sync.OnceFunc(func() { schedulermetrics.RegisterMetrics(cycles) })
