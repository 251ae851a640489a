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

// mostValues is how many values of a label are named that nodes have.
const mostValues = 3

// unmatched says which of the labels in the pod's node selector, or in each of the terms of its required node affinity,
// no node has. If each of them is on some node, it says that no node has all of them. It is empty if some node matches,
// or if that is not a matter of labels.
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
		all, of := 0, make([]int, len(term))
		meets := make([]func(*v1.Node) bool, len(term))
		for i := range term {
			meets[i] = meeting(term[i])
		}
		for _, info := range infos {
			matches := true
			for i := range term {
				if meets[i](info.Node()) {
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

// meeting returns what reports whether a node meets the requirement. One that cannot be read is met by none, as for the
// scheduler.
func meeting(r v1.NodeSelectorRequirement) func(*v1.Node) bool {
	term := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{r}}
	selector, err := nodeaffinity.NewNodeSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}})
	return func(node *v1.Node) bool { return err == nil && selector.Match(node) }
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
