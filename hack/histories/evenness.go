package main

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Spread is a topology spread constraint of a pod that no node may violate.
type Spread struct {
	// Of names the pods that are spread. The pod is one of them.
	Of string `json:"of"`
	// Zones is set if they are spread over zones, else it is over nodes.
	Zones bool `json:"zones,omitempty"`
	// MaxSkew is how many more of them a zone or node may have than another.
	MaxSkew int32 `json:"maxSkew"`
}

// key is the label of nodes over whose values pods are spread.
func (s *Spread) key() string {
	if s.Zones {
		return v1.LabelTopologyZone
	}
	return v1.LabelHostname
}

func (s *Spread) apply(pod *v1.Pod) {
	pod.Labels[spreadLabel] = s.Of
	pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: s.MaxSkew, TopologyKey: s.key(), WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{spreadLabel: s.Of}},
	}}
}

// even reports whether the pod's constraint allows the node, given what all of them have.
func (v *vacancy) even(pod *v1.Pod, p *Pod, all []*vacancy) bool {
	if p.Spread == nil {
		return true
	}
	affinity, counts := nodeaffinity.GetRequiredNodeAffinity(pod), map[string]int{}
	for _, o := range all {
		if matches, err := affinity.Match(o.node); err == nil && matches {
			counts[o.node.Labels[p.Spread.key()]] += o.spread[p.Spread.Of]
		}
		// A pod that is on its way is counted with the pods of its node and without, and both ways have to be allowed.
		if o.uneven || slices.ContainsFunc(o.nominated,
			func(n *v1.Pod) bool { return n.Labels[spreadLabel] == p.Spread.Of }) {
			return false
		}
	}
	here := counts[v.node.Labels[p.Spread.key()]]
	for _, n := range counts {
		if here+1-n > int(p.Spread.MaxSkew) {
			return false
		}
	}
	return true
}
