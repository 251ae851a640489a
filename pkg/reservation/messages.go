package reservation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/reserve"
)

// said is what is kept for the gang that has a reservation, and when it starts.
type said struct {
	of      gang.ID
	message string
	nodes   []string
	start   *schedulingv1alpha1.PodGroupEstimatedStart
}

// tell has the status of the gang's PodGroup say what is kept for it.
func (r *Reservations) tell(id gang.ID, next said) {
	if r.note(id, next) {
		r.Status.Enqueue(id)
	}
}

// note notes what is said of the gang, and reports whether that is news.
func (r *Reservations) note(id gang.ID, next said) bool {
	message, nodes, start := r.Said(id)
	if message == next.message && slices.Equal(nodes, next.nodes) && equality.Semantic.DeepEqual(start, next.start) {
		return false
	}
	next.of = id
	r.said.Store(&next)
	return true
}

// Said returns what is said of the gang: what is kept for it, on which nodes, and when it starts.
func (r *Reservations) Said(id gang.ID) (message string, on []string,
	start *schedulingv1alpha1.PodGroupEstimatedStart) {
	if s := r.said.Load(); s != nil && s.of == id {
		return s.message, s.nodes, s.start
	}
	return "", nil, nil
}

// word says what is kept, what it lacks, and when the gang starts if that is known. last is the pod that has to end
// last for that, if one has, and outlived a pod that the gang waited for and that did not end by its word.
func word(kept *reserve.Choice, last, outlived *v1.Pod, end, now time.Time) said {
	on := map[string]bool{}
	for _, place := range kept.Places {
		on[place.Node] = true
	}
	next := said{message: plural.Of(len(on), "node") + " reserved", nodes: slices.Sorted(maps.Keys(on))}
	switch {
	case kept.Ready:
		next.message += ", on which the gang fits"
	case kept.Start.IsZero():
		next.message += fmt.Sprintf(", on which at least %s %s to end first", plural.Of(kept.Pods, "pod"),
			plural.Choose(kept.Pods, "has", "have"))
	case !kept.Start.After(now):
		next.message += ", on which pods are about to end"
	default:
		// A second later rather than earlier than it can be.
		at := kept.Start.UTC().Truncate(time.Second)
		if at.Before(kept.Start) {
			at = at.Add(time.Second)
		}
		next.start = &schedulingv1alpha1.PodGroupEstimatedStart{Time: metav1.NewTime(at)}
		next.message += "; starts at " + clock(at, now)
		if last != nil {
			next.start.WaitsFor = fmt.Sprintf("for %s on %s, which ends at %s", workloadOf(last), last.Spec.NodeName,
				clock(at, now))
			next.message += "; waits " + next.start.WaitsFor
		}
	}
	if outlived != nil {
		next.message += fmt.Sprintf("; %s on %s was to end at %s and still runs", workloadOf(outlived),
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
