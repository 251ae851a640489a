// Package budgets knows which pods PodDisruptionBudgets cover, and whether pods may go together. Preemption, repairs
// and moves ask it. It lists no budgets and evicts nothing.
package budgets

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Coverage tells which PodDisruptionBudgets cover a pod.
type Coverage struct {
	// Allowed is how many evictions each budget allows now.
	Allowed     []int
	byNamespace map[string][]budgetSelector
}

type budgetSelector struct {
	index    int
	selector labels.Selector
}

// Read reads the budgets. One with an empty selector covers all pods of its namespace, one without a selector
// none.
func Read(budgets []*policyv1.PodDisruptionBudget) *Coverage {
	c := &Coverage{byNamespace: map[string][]budgetSelector{}}
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			continue
		}
		c.byNamespace[budget.Namespace] = append(c.byNamespace[budget.Namespace],
			budgetSelector{index: len(c.Allowed), selector: selector})
		c.Allowed = append(c.Allowed, int(budget.Status.DisruptionsAllowed))
	}
	return c
}

// Of returns the indices, in Allowed, of the budgets that cover the pod.
func (c *Coverage) Of(pod *v1.Pod) []int {
	var covering []int
	for _, b := range c.byNamespace[pod.Namespace] {
		if b.selector.Matches(labels.Set(pod.Labels)) {
			covering = append(covering, b.index)
		}
	}
	return covering
}

// Spend reports whether the budgets allow that the pods go together, and counts them as gone.
func (c *Coverage) Spend(pods []*v1.Pod) bool {
	for _, pod := range pods {
		for _, budget := range c.Of(pod) {
			if c.Allowed[budget]--; c.Allowed[budget] < 0 {
				return false
			}
		}
	}
	return true
}
