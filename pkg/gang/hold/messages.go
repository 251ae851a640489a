package hold

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/starts"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// tell has the status of the gang's PodGroup say what is kept for it.
func (r *Reservations) tell(id gang.ID, next status.Reservation) {
	next.Of = id
	r.Status.Reserve(next)
}

// word says what is kept, what it lacks, and when the gang starts if that is known. last is the pod that has to end
// last for that, if one has, and outlived a pod that the gang waited for and that did not end by its word.
func word(kept *starts.Choice, last, outlived *v1.Pod, end, now time.Time) status.Reservation {
	on := map[string]bool{}
	for _, place := range kept.Places {
		on[place.Node] = true
	}
	next := status.Reservation{Message: plural.Of(len(on), "node") + " reserved", Nodes: slices.Sorted(maps.Keys(on))}
	switch {
	case kept.Ready:
		next.Message += ", on which the gang fits"
	case kept.Start.IsZero():
		next.Message += fmt.Sprintf(", on which at least %s %s to end first", plural.Of(kept.Pods, "pod"),
			plural.Choose(kept.Pods, "has", "have"))
	case !kept.Start.After(now):
		next.Message += ", on which pods are about to end"
	default:
		// A second later rather than earlier than it can be.
		at := kept.Start.UTC().Truncate(time.Second)
		if at.Before(kept.Start) {
			at = at.Add(time.Second)
		}
		next.Start = &schedulingv1alpha1.PodGroupEstimatedStart{Time: metav1.NewTime(at)}
		next.Message += "; starts at " + clock(at, now)
		if last != nil {
			next.Start.WaitsFor = fmt.Sprintf("for %s on %s, which ends at %s", workloadOf(last), last.Spec.NodeName,
				clock(at, now))
			next.Message += "; waits " + next.Start.WaitsFor
		}
	}
	if outlived != nil {
		next.Message += fmt.Sprintf("; %s on %s was to end at %s and still runs", workloadOf(outlived),
			outlived.Spec.NodeName, clock(end, now))
	}
	return next
}

// workloadOf names what users know the pod by.
func workloadOf(pod *v1.Pod) string {
	_, name := podview.WorkloadOf(pod)
	return name
}

// clock is the time of the day, with the date unless it is today.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05 UTC")
	}
	return t.Format("Jan 2 15:04 UTC")
}
