package reservation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/starttime"
	"berth.dev/berth/pkg/waitlist"
)

// tellStart has the status of the gang's PodGroup say when it is expected to start, and what is kept for it.
func (r *Reservations) tellStart(p *timedPlan, g *waitlist.Gang, place int, reserved *starttime.Reservation,
	now time.Time) {
	second := func(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
	start := &schedulingv1alpha1.PodGroupEstimatedStart{Time: second(reserved.Told.Likely),
		Earliest: second(reserved.Told.Earliest),
		Latest:   second(reserved.Told.Latest), Place: int32(place)}
	if pod, at := p.lastEnd(reserved); pod != nil {
		start.WaitsFor = fmt.Sprintf("for %s on %s, expected to end at %s", workloadOf(pod), pod.Spec.NodeName,
			clock(at, now))
	}
	next := said{start: start, at: now}
	if reserved.Held {
		nodes := map[string]bool{}
		for _, place := range reserved.Places {
			nodes[p.nodes[place.Node].Name] = true
		}
		next.nodes = slices.Sorted(maps.Keys(nodes))
		next.message = plural.Of(len(nodes), "node") + " reserved, on which the gang fits"
		if !reserved.Now() {
			next.message = fmt.Sprintf("%s reserved; expected to start at %s, between %s and %s", plural.Of(len(nodes), "node"),
				clock(reserved.Told.Likely, now), clock(reserved.Told.Earliest, now), clock(reserved.Told.Latest, now))
			if start.WaitsFor != "" {
				next.message += "; waits " + start.WaitsFor
			}
		}
	}
	if r.Messages.set(g.ID, next) {
		r.Changed(g.ID)
	}
}

// clock is the time of the day, with the date unless it is today.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04 UTC")
	}
	return t.Format("Jan 2 15:04 UTC")
}
