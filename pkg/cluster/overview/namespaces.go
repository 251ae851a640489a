package overview

import (
	"maps"
	"slices"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/podview"
)

// addNamespaces adds the namespaces with pods.
func (s *snapshot) addNamespaces(c *Cluster, costs map[string]price.MicroDollars) {
	sums := map[string]*Namespace{}
	for _, p := range s.pods {
		if podview.Finished(p.pod) || podview.BelongsToNode(p.pod) {
			continue
		}
		n := sums[p.pod.Namespace]
		if n == nil {
			n = &Namespace{Name: p.pod.Namespace, MicroDollarsPerHour: costs[p.pod.Namespace]}
			sums[p.pod.Namespace] = n
		}
		if p.pod.Spec.NodeName == "" {
			n.PendingPods++
			n.PendingMilliGPU += p.milli
		} else {
			n.Pods++
			n.MilliGPU += p.milli
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		c.Namespaces = append(c.Namespaces, *sums[name])
	}
}
