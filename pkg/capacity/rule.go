package capacity

import (
	"encoding/json"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/process"
)

// verdict says whether pods with a placement rule may be on a node, whatever they request, and if not why.
type verdict uint8

// The verdicts, in the order in which the scheduler's own filters find them.
const (
	// absent nodes do not exist.
	absent verdict = iota
	admitted
	cordoned
	misnamed
	tainted
	unselected
	refused
)

// placementRule is what several shapes have in common: node selector, required node affinity, tolerations, the rule of
// plugins. It is judged for a node only when the node's labels, taints, cordon or hardware change.
type placementRule struct {
	description string
	// shapes counts the live shapes with the rule.
	shapes      int
	checks      process.Checks
	nodeName    string
	tolerations []v1.Toleration
	affinity    nodeaffinity.RequiredNodeAffinity
	ofPlugins   []process.NodeRule
	// verdicts are in the order of the nodes' slots.
	verdicts []verdict
}

// ruleOf returns the rule of a pod, which has yet to judge nodes.
func ruleOf(pod *v1.Pod, filters *process.Traits) *placementRule {
	r := &placementRule{
		checks:      filters.Rules,
		ofPlugins:   filters.NodeRules(pod),
		nodeName:    pod.Spec.NodeName,
		tolerations: pod.Spec.Tolerations,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(pod),
	}
	r.description = r.describe(pod)
	return r
}

// describe writes what decides on which nodes a pod may be, whatever it requests.
func (r *placementRule) describe(pod *v1.Pod) string {
	rule := struct {
		Checks      process.Checks
		NodeName    string            `json:",omitempty"`
		OfPlugins   []string          `json:",omitempty"`
		Tolerations []string          `json:",omitempty"`
		Selector    map[string]string `json:",omitempty"`
		Affinity    *v1.NodeSelector  `json:",omitempty"`
	}{Checks: r.checks, NodeName: r.nodeName, Selector: pod.Spec.NodeSelector}
	for _, of := range r.ofPlugins {
		rule.OfPlugins = append(rule.OfPlugins, of.Key())
	}
	for _, t := range r.tolerations {
		if t.Effect != v1.TaintEffectPreferNoSchedule {
			rule.Tolerations = append(rule.Tolerations,
				strings.Join([]string{t.Key, string(t.Operator), t.Value, string(t.Effect)}, "\x00"))
		}
	}
	slices.Sort(rule.Tolerations)
	rule.Tolerations = slices.Compact(rule.Tolerations)
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		rule.Affinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	written, _ := json.Marshal(rule) // these types can always be encoded
	return string(written)
}

func (r *placementRule) judgeAll(nodes []*nodeEntry) {
	r.verdicts = make([]verdict, len(nodes))
	for i, n := range nodes {
		if n != nil {
			r.verdicts[i] = r.judge(n.node)
		}
	}
}

func (r *placementRule) judge(node *v1.Node) verdict {
	switch {
	case node == nil:
		return absent
	case r.checks&process.ChecksCordon != 0 && node.Spec.Unschedulable &&
		!r.tolerates(&v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}):
		return cordoned
	case r.checks&process.ChecksName != 0 && r.nodeName != "" && r.nodeName != node.Name:
		return misnamed
	}
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if r.checks&process.ChecksTaints != 0 &&
			(t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute) && !r.tolerates(t) {
			return tainted
		}
	}
	// An affinity that cannot be read rules nothing out here: a cycle of the pod reports it.
	if ok, err := r.affinity.Match(node); r.checks&process.ChecksAffinity != 0 && err == nil && !ok {
		return unselected
	}
	if r.against(node) != "" {
		return refused
	}
	return admitted
}

// against is what a plugin says against the node, empty if none does.
func (r *placementRule) against(node *v1.Node) string {
	for _, rule := range r.ofPlugins {
		if against := rule.Against(node); against != "" {
			return against
		}
	}
	return ""
}

// tolerates also compares numbers, whether or not the scheduler's feature gate for that is on: at most too much is
// admitted. Values that are not numbers are logged by the scheduler's own filter.
func (r *placementRule) tolerates(t *v1.Taint) bool {
	for i := range r.tolerations {
		if r.tolerations[i].ToleratesTaint(klog.Logger{}, t, true) {
			return true
		}
	}
	return false
}
