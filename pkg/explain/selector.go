package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"
)

// mostValues is how many of the existing values of a label are named.
const mostValues = 3

// unmatched says which labels of the pod's node selector, or of each term of its required node affinity, no node has.
// If each label is on some node, it says that no node has all of them. It is empty if a node matches, or if labels are
// not the reason.
func unmatched(pod *v1.Pod, infos []fwk.NodeInfo) string {
	var selector []v1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		selector = append(selector, v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn,
			Values: []string{pod.Spec.NodeSelector[key]}})
	}
	terms := [][]v1.NodeSelectorRequirement{selector}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil &&
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = nil
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			terms = append(terms, slices.Concat(selector, term.MatchExpressions))
		}
	}
	var missing []string
	for _, term := range terms {
		if len(term) == 0 || meet(infos, term...) {
			return ""
		}
		at := slices.IndexFunc(term, func(r v1.NodeSelectorRequirement) bool { return !meet(infos, r) })
		var lacking string
		if at >= 0 {
			lacking = missingLabel(&term[at], infos)
		} else {
			wanted := make([]string, len(term))
			for i := range term {
				wanted[i] = written(&term[i])
			}
			lacking = "no node has all of " + strings.Join(wanted, ", ")
		}
		if !slices.Contains(missing, lacking) {
			missing = append(missing, lacking)
		}
	}
	return strings.Join(missing, ", and ")
}

// meet reports whether a node meets all the requirements. As for the scheduler, no node meets an invalid one.
func meet(infos []fwk.NodeInfo, all ...v1.NodeSelectorRequirement) bool {
	selector, err := nodeaffinity.NewNodeSelector(
		&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: all}}})
	return err == nil && slices.ContainsFunc(infos, func(info fwk.NodeInfo) bool { return selector.Match(info.Node()) })
}

func written(r *v1.NodeSelectorRequirement) string {
	switch values := strings.Join(r.Values, " or "); r.Operator {
	case v1.NodeSelectorOpIn:
		return r.Key + "=" + values
	case v1.NodeSelectorOpExists:
		return r.Key
	default:
		return strings.TrimSpace(r.Key + " " + string(r.Operator) + " " + values)
	}
}

// missingLabel says that no node has the label, and which values nodes have instead.
func missingLabel(r *v1.NodeSelectorRequirement, infos []fwk.NodeInfo) string {
	values := map[string]bool{}
	for _, info := range infos {
		if value, labelled := info.Node().Labels[r.Key]; labelled {
			values[value] = true
		}
	}
	text := "no node has the label " + written(r)
	if r.Operator != v1.NodeSelectorOpIn && r.Operator != v1.NodeSelectorOpExists {
		text = "no node meets " + written(r)
	}
	if len(values) == 0 {
		return text
	}
	some := slices.Sorted(maps.Keys(values))
	if len(some) > mostValues {
		some = append(some[:mostValues:mostValues], "…")
	}
	return text + fmt.Sprintf(" (nodes have %s)", strings.Join(some, ", "))
}
