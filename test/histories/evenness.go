package main

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"berth.dev/berth/test/histories/history"
)

// even reports whether the pod's constraint allows the node, given what all of them have.
func (v *vacancy) even(pod *v1.Pod, p *history.Pod, all []*vacancy) bool {
	if p.Spread == nil {
		return true
	}
	affinity, counts := nodeaffinity.GetRequiredNodeAffinity(pod), map[string]int{}
	for _, o := range all {
		if matches, err := affinity.Match(o.node); err == nil && matches {
			counts[o.node.Labels[p.Spread.Key()]] += o.spread[p.Spread.Of]
		}
		// A pod that is on its way is counted with the pods of its node and without, and both ways have to be allowed.
		if o.uneven || slices.ContainsFunc(o.nominated,
			func(n *v1.Pod) bool { return n.Labels[history.SpreadLabel] == p.Spread.Of }) {
			return false
		}
	}
	here := counts[v.node.Labels[p.Spread.Key()]]
	for _, n := range counts {
		if here+1-n > int(p.Spread.MaxSkew) {
			return false
		}
	}
	return true
}
