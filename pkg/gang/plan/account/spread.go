package account

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/podview"
)

// Spread is a topology spread constraint of a class that nodes must not violate, with exact counts.
//
// PodTopologySpread itself is not exact in a dry run: when pods are added to its state one by one it follows the two
// emptiest domains only, and takes the emptier of them for the emptiest of all. With three domains it may let a third
// member join the first although one domain is empty. It is asked all the same, since it knows defaults that are not in
// the pod.
type Spread struct {
	constraint *v1.TopologySpreadConstraint
	// pod is one of the class, affinity what it asks of nodes, and keys are those of all its constraints.
	pod      *v1.Pod
	affinity nodeaffinity.RequiredNodeAffinity
	keys     []string
	// selector selects the pods that count, self is 1 if a member of the class counts itself.
	selector labels.Selector
	self     int
	// counts holds the pods that count by domain, of all domains that do; least is the smallest of them and atLeast the
	// number of domains that have it. A node is asked about far more often than a pod is placed.
	counts         map[string]int
	least, atLeast int
}

// SpreadsOf returns the constraints of the pod as they are on nodes.
func SpreadsOf(pod *v1.Pod, nodes []fwk.NodeInfo) ([]*Spread, error) {
	var spreads []*Spread
	var keys []string
	for i := range pod.Spec.TopologySpreadConstraints {
		if c := &pod.Spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == v1.DoNotSchedule {
			s, err := newSpread(pod, c)
			if err != nil {
				return nil, err
			}
			spreads, keys = append(spreads, s), append(keys, c.TopologyKey)
		}
	}
	for _, s := range spreads {
		s.keys = keys
		for _, n := range nodes {
			if node := n.Node(); s.included(node) {
				domain := node.Labels[s.constraint.TopologyKey]
				s.counts[domain] += 0
				for _, info := range n.GetPods() {
					if s.matches(info.GetPod()) {
						s.counts[domain]++
					}
				}
			}
		}
		s.findLeast()
	}
	return spreads, nil
}

func newSpread(pod *v1.Pod, c *v1.TopologySpreadConstraint) (*Spread, error) {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("reading a topology spread constraint of pod %s: %w", klog.KObj(pod), err)
	}
	for _, key := range c.MatchLabelKeys {
		if value, has := pod.Labels[key]; has {
			same, _ := labels.SelectorFromSet(labels.Set{key: value}).Requirements()
			selector = selector.Add(same...)
		}
	}
	s := &Spread{constraint: c, pod: pod, affinity: nodeaffinity.GetRequiredNodeAffinity(pod), selector: selector,
		counts: map[string]int{}}
	if selector.Matches(labels.Set(pod.Labels)) {
		s.self = 1
	}
	return s, nil
}

// included reports whether a node counts.
func (s *Spread) included(n *v1.Node) bool {
	for _, key := range s.keys {
		if _, has := n.Labels[key]; !has {
			return false
		}
	}
	if ptr.Deref(s.constraint.NodeAffinityPolicy, v1.NodeInclusionPolicyHonor) == v1.NodeInclusionPolicyHonor {
		if match, err := s.affinity.Match(n); err != nil || !match {
			return false
		}
	}
	taints := ptr.Deref(s.constraint.NodeTaintsPolicy, v1.NodeInclusionPolicyIgnore)
	return taints == v1.NodeInclusionPolicyIgnore || podview.Tolerates(s.pod, n.Spec.Taints)
}

func (s *Spread) matches(pod *v1.Pod) bool {
	return pod.Namespace == s.pod.Namespace && pod.DeletionTimestamp == nil && s.selector.Matches(labels.Set(pod.Labels))
}

// Add counts a pod that was placed on a node.
func (s *Spread) Add(pod *v1.Pod, node *v1.Node) {
	if !s.included(node) || !s.matches(pod) {
		return
	}
	domain := node.Labels[s.constraint.TopologyKey]
	before := s.counts[domain]
	s.counts[domain]++
	if before == s.least {
		if s.atLeast--; s.atLeast == 0 {
			s.findLeast()
		}
	}
}

// findLeast looks at all domains: once, and again when none has the least any more.
func (s *Spread) findLeast() {
	s.least, s.atLeast = 0, 0
	for count := range maps.Values(s.counts) {
		switch {
		case s.atLeast == 0 || count < s.least:
			s.least, s.atLeast = count, 1
		case count == s.least:
			s.atLeast++
		}
	}
}

// Fits reports whether one more member on the node keeps the constraint.
func (s *Spread) Fits(node *v1.Node) bool {
	least := s.least
	if len(s.counts) < int(ptr.Deref(s.constraint.MinDomains, 1)) {
		least = 0
	}
	return s.counts[node.Labels[s.constraint.TopologyKey]]+s.self-least <= int(s.constraint.MaxSkew)
}
