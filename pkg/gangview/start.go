package gangview

import (
	"fmt"
	"time"

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
