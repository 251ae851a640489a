package read

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// Late says which deadline the gang cannot keep any more, empty if it keeps it.
func Late(pg *schedulingv1alpha1.PodGroup) string {
	c := meta.FindStatusCondition(pg.Status.Conditions, schedulingv1alpha1.PodGroupDeadlineMissed)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Message
}
