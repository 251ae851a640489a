package capacity

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/podview"
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
	failing
	refused
	verdicts
)

// placementRule is what several shapes have in common: node selector, required node affinity, tolerations, the rule of
// a plugin. It is judged for a node only when the node's labels, taints, cordon or hardware change.
type placementRule struct {
	description string
	holders     int
	checks      process.Checks
	nodeName    string
	tolerations []v1.Toleration
	affinity    nodeaffinity.RequiredNodeAffinity
	// ofPlugin is the rule of a plugin, nil for none.
	ofPlugin process.NodeRule
	// verdicts are in the order of the nodes' slots; before holds the last ones of the nodes that are being compared.
	verdicts, before []verdict
}

func newPlacementRule(pod *v1.Pod, filters *process.Traits, description string, nodes []*nodeEntry) *placementRule {
	r := &placementRule{
		description: description,
		checks:      filters.Rules,
		ofPlugin:    filters.NodeRule(pod),
		nodeName:    pod.Spec.NodeName,
		tolerations: pod.Spec.Tolerations,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(pod),
		verdicts:    make([]verdict, len(nodes)),
	}
	for i, n := range nodes {
		if n != nil {
			r.verdicts[i] = r.judge(n.node)
		}
	}
	return r
}

// judgeAgain judges the nodes that have changed, and keeps the verdicts so far by the nodes' places.
func (r *placementRule) judgeAgain(changed []*nodeEntry) {
	r.before = r.before[:0]
	for _, n := range changed {
		r.before = append(r.before, r.verdicts[n.slot])
		r.verdicts[n.slot] = r.judge(n.node)
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
	if r.checks&process.ChecksHardware != 0 && podview.FailingHardware(node) != "" {
		return failing
	}
	if r.ofPlugin != nil && r.ofPlugin.Against(node) != "" {
		return refused
	}
	return admitted
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
