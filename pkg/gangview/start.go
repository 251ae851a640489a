package gangview

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// ExpectedStart says when the gang of the PodGroup is expected to start, empty if that is not known.
func ExpectedStart(pg *schedulingv1alpha1.PodGroup) string {
	s := pg.Status.EstimatedStart
	if s == nil {
		return ""
	}
	at := func(t time.Time) string { return t.UTC().Format("Jan 2 15:04 UTC") }
	text := fmt.Sprintf("expected to start at %s, between %s and %s; number %d of the gangs that wait", at(s.Time.Time),
		at(s.Earliest.Time), at(s.Latest.Time), s.Place)
	if s.WaitsFor != "" {
		text += "; waits " + s.WaitsFor
	}
	return text
}

// Late says which deadline the gang cannot keep any more, empty if it keeps it.
func Late(pg *schedulingv1alpha1.PodGroup) string {
	c := meta.FindStatusCondition(pg.Status.Conditions, schedulingv1alpha1.PodGroupDeadlineMissed)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Message
}
