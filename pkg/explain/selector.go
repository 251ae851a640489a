package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// mostValues is how many values of a label are named that nodes have.
const mostValues = 3

// unmatched says which of the labels in the pod's node selector, or in each of the terms of its required node affinity, no node has. If
// each of them is on some node, it says that no node has all of them. It is empty if some node matches, or if that is not a matter of labels.
func unmatched(pod *v1.Pod, infos []fwk.NodeInfo) string {
	var selector []v1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		selector = append(selector, v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{pod.Spec.NodeSelector[key]}})
	}
	terms := [][]v1.NodeSelectorRequirement{selector}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = nil
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			terms = append(terms, slices.Concat(selector, term.MatchExpressions))
		}
	}
	var missing []string
	for _, term := range terms {
		all, of := 0, make([]int, len(term))
		for _, info := range infos {
			matches := true
			for i := range term {
				if has(info.Node(), &term[i]) {
					of[i]++
				} else {
					matches = false
				}
			}
			if matches {
				all++
			}
		}
		if all > 0 {
			return ""
		}
		lacking := ""
		for i := range term {
			if of[i] == 0 {
				lacking = missingLabel(&term[i], infos)
				break
			}
		}
		if lacking == "" {
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

// has says whether the node meets the requirement, as far as that is a matter of which values its label has.
func has(node *v1.Node, r *v1.NodeSelectorRequirement) bool {
	value, labelled := node.Labels[r.Key]
	switch r.Operator {
	case v1.NodeSelectorOpIn:
		return labelled && slices.Contains(r.Values, value)
	case v1.NodeSelectorOpExists:
		return labelled
	default:
		return true // others are met by most nodes
	}
}

func written(r *v1.NodeSelectorRequirement) string {
	if len(r.Values) == 0 {
		return r.Key
	}
	return r.Key + "=" + strings.Join(r.Values, " or ")
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
	if len(values) == 0 {
		return text
	}
	some := slices.Sorted(maps.Keys(values))
	if len(some) > mostValues {
		some = append(some[:mostValues:mostValues], "…")
	}
	return text + fmt.Sprintf(" (nodes have %s)", strings.Join(some, ", "))
}
