package history

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Key is the label of nodes over whose values pods are spread.
func (s *Spread) Key() string {
	if s.Zones {
		return v1.LabelTopologyZone
	}
	return v1.LabelHostname
}

func (s *Spread) apply(pod *v1.Pod) {
	pod.Labels[SpreadLabel] = s.Of
	pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: s.MaxSkew, TopologyKey: s.Key(), WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{SpreadLabel: s.Of}},
	}}
}
