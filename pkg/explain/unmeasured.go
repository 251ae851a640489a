package explain

import (
	"cmp"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/plugins/slaaware"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/schedulerconfig"
)

// NotScored is a plugin that did not score because a snapshot does not have its input.
type NotScored struct {
	Plugin string `json:"plugin"`
	// Why names what is missing and where it is.
	Why string `json:"why"`
}

// notScored returns SLAAware for a pod with objectives: only Prometheus has the measured values of nodes.
func notScored(c *schedulerconfig.Configuration, pod *v1.Pod) []NotScored {
	want, bad := podview.PodObjective(pod)
	if bad != nil || want.None() {
		return nil
	}
	for _, p := range c.Component.Profiles {
		if p.SchedulerName != pod.Spec.SchedulerName {
			continue
		}
		for _, pc := range p.PluginConfig {
			args, ok := pc.Args.(*config.SLAAwareArgs)
			if !ok {
				continue
			}
			signals := cmp.Or(args.Signals, &config.SLOSignals{})
			var why []string
			if want.LatencyMs > 0 {
				why = append(why, missing(fmt.Sprintf("a latency of at most %g ms", want.LatencyMs), "latencyMsQuery",
					signals.LatencyMsQuery, signals))
			}
			if want.Throughput > 0 {
				why = append(why, missing(fmt.Sprintf("a throughput of at least %g", want.Throughput), "throughputQuery",
					signals.ThroughputQuery, signals))
			}
			return []NotScored{{Plugin: slaaware.Name, Why: strings.Join(why, "; ")}}
		}
	}
	return nil
}

// missing says where the values for an objective are, or that there are none.
func missing(objective, field, query string, signals *config.SLOSignals) string {
	if query == "" {
		return fmt.Sprintf("the pod asks for %s, and the arguments have no signals.%s", objective, field)
	}
	return fmt.Sprintf(
		"the pod asks for %s; the figures of the nodes are in Prometheus (%s, query %q) and not in the dump",
		objective, signals.Prometheus.URL, query)
}
