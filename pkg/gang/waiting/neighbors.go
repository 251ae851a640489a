package waiting

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// neighbors selects the pods whose arrival on a node may help a member: those that it has to be near by required
// affinity, and those that even out its spread.
type neighbors struct {
	near   []fwk.AffinityTerm
	spread []spreadAmong
}

// spreadAmong selects the pods of a namespace that a spread counts.
type spreadAmong struct {
	namespace string
	selector  labels.Selector
}

// add adds those of a member. What is malformed selects none: the scheduler's own filters report it.
func (n *neighbors) add(pod *v1.Pod) {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		if info, err := framework.NewPodInfo(pod); err == nil {
			n.near = append(n.near, info.GetRequiredAffinityTerms()...)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector); err == nil &&
			c.WhenUnsatisfiable == v1.DoNotSchedule {
			n.spread = append(n.spread, spreadAmong{pod.Namespace, selector})
		}
	}
}

func (n *neighbors) empty() bool { return len(n.near)+len(n.spread) == 0 }

// Has reports whether one of the pods is selected. The labels of namespaces are not known here: a selector of them
// selects all.
func (n *neighbors) Has(pods []*v1.Pod) bool {
	for _, pod := range pods {
		for i := range n.near {
			term := &n.near[i]
			requirements, selectable := term.NamespaceSelector.Requirements()
			if term.Matches(pod, nil) || selectable && len(requirements) > 0 && term.Selector.Matches(labels.Set(pod.Labels)) {
				return true
			}
		}
		for _, s := range n.spread {
			if s.namespace == pod.Namespace && s.selector.Matches(labels.Set(pod.Labels)) {
				return true
			}
		}
	}
	return false
}
