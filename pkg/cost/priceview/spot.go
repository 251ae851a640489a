package priceview

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

// SpotPolicy is whether a pod accepts spot capacity.
type SpotPolicy string

// Spot policies. Avoid and require are hard: an avoiding pod is never put on a spot node, a requiring one on no other.
const (
	SpotAvoid    SpotPolicy = "avoid"
	SpotTolerate SpotPolicy = "tolerate"
	SpotRequire  SpotPolicy = "require"
)

// Allows says whether a pod with this policy may run on that type of capacity.
func (p SpotPolicy) Allows(t CapacityType) bool {
	switch p {
	case SpotRequire:
		return t == Spot
	case SpotTolerate:
		return true
	}
	return t != Spot
}

// PodSpotPolicy returns the spot policy that the pod states itself, if any.
func PodSpotPolicy(pod *v1.Pod) (SpotPolicy, bool, *wellknown.BadValue) {
	value, ok := pod.Annotations[wellknown.SpotKey]
	if !ok {
		return "", false, nil
	}
	switch p := SpotPolicy(value); p {
	case SpotAvoid, SpotTolerate, SpotRequire:
		return p, true, nil
	}
	return "", false, &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.SpotKey, Value: value,
		Allowed: `one of "avoid", "tolerate", "require"`}
}

// AsksForSpot reports whether the pod's node selector, required node affinity or tolerations name spot capacity by a
// label of these rules. One of the alternatives of a node affinity is enough.
func (rules CapacityRules) AsksForSpot(pod *v1.Pod) bool {
	for i := range rules {
		if rules[i].Type == Spot && rules[i].namedBy(pod) {
			return true
		}
	}
	return false
}

// namedBy says whether the pod names capacity of the rule.
func (r *CapacityRule) namedBy(pod *v1.Pod) bool {
	if value, ok := pod.Spec.NodeSelector[r.Label]; ok && r.matches(value) {
		return true
	}
	if r.requiredBy(pod.Spec.Affinity) {
		return true
	}
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if t.Key == r.Label && (t.Operator == v1.TolerationOpExists || r.matches(t.Value)) {
			return true
		}
	}
	return false
}

// requiredBy says whether a term of the required node affinity names a value of the rule or, where the label's presence
// is enough, the label.
func (r *CapacityRule) requiredBy(affinity *v1.Affinity) bool {
	if affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	names := func(e v1.NodeSelectorRequirement) bool {
		switch {
		case e.Key != r.Label:
			return false
		case e.Operator == v1.NodeSelectorOpExists:
			return len(r.Values) == 0 && len(r.Contains) == 0
		}
		return e.Operator == v1.NodeSelectorOpIn && slices.ContainsFunc(e.Values, r.matches)
	}
	return slices.ContainsFunc(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms,
		func(t v1.NodeSelectorTerm) bool { return slices.ContainsFunc(t.MatchExpressions, names) })
}

// SetSpotPolicy sets the spot policy of a pod.
func SetSpotPolicy(pod *v1.Pod, policy SpotPolicy) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wellknown.SpotKey, string(policy))
}
