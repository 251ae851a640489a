package evictor

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// coverage holds the selectors of the PodDisruptionBudgets of each namespace, by the position of the budget.
type coverage map[string]map[int]labels.Selector

// readBudgets returns how many evictions each budget allows now, and which pods it covers: all of its namespace with an
// empty selector, and none without a selector.
func readBudgets(budgets []*policyv1.PodDisruptionBudget) (allowed []int, covers coverage) {
	allowed, covers = make([]int, len(budgets)), coverage{}
	for i, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			continue
		}
		if covers[budget.Namespace] == nil {
			covers[budget.Namespace] = map[int]labels.Selector{}
		}
		allowed[i], covers[budget.Namespace][i] = int(budget.Status.DisruptionsAllowed), selector
	}
	return allowed, covers
}

// of returns the positions of the budgets that cover the pod.
func (c coverage) of(pod *v1.Pod) (covering []int) {
	for i, selector := range c[pod.Namespace] {
		if selector.Matches(labels.Set(pod.Labels)) {
			covering = append(covering, i)
		}
	}
	return covering
}
