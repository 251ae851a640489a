package evictor

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// coverage tells which PodDisruptionBudgets cover a pod.
type coverage struct {
	// allowed is how many evictions each budget allows now.
	allowed     []int
	byNamespace map[string][]budgetSelector
}

type budgetSelector struct {
	index    int
	selector labels.Selector
}

// readBudgets reads the budgets. One with an empty selector covers all pods of its namespace, one without a selector
// none.
func readBudgets(budgets []*policyv1.PodDisruptionBudget) *coverage {
	c := &coverage{byNamespace: map[string][]budgetSelector{}}
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			continue
		}
		c.byNamespace[budget.Namespace] = append(c.byNamespace[budget.Namespace],
			budgetSelector{index: len(c.allowed), selector: selector})
		c.allowed = append(c.allowed, int(budget.Status.DisruptionsAllowed))
	}
	return c
}

// of returns the indices, in allowed, of the budgets that cover the pod.
func (c *coverage) of(pod *v1.Pod) []int {
	var covering []int
	for _, b := range c.byNamespace[pod.Namespace] {
		if b.selector.Matches(labels.Set(pod.Labels)) {
			covering = append(covering, b.index)
		}
	}
	return covering
}
