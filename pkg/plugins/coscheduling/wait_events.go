package coscheduling

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
)

// The reasons of events about a gang that waits.
const (
	waitsForGroup   = "MissingPodGroup"
	waitsForMembers = "TooFewMembers"
	waitsForRoom    = "NotEnoughRoom"
)

// mostWaits bounds the events about one gang: reasons in the words of other plugins may never repeat.
const mostWaits = 10

// groupWait is for what a gang waits.
type groupWait struct {
	reason string
	// kind is equal for waits that differ in names and amounts alone.
	kind, message string
}

// waitOf returns for what a gang waits that has not started, nil if it goes on in a moment.
func waitOf(id gang.ID, v gang.View, pg *schedulingv1alpha1.PodGroup) *groupWait {
	switch {
	case v.Reason != nil:
		return &groupWait{waitsForRoom, v.Reason.Kind(), v.Reason.String()}
	case v.Minimum.Total == 0 && pg == nil && v.Note != "":
		return &groupWait{waitsForGroup, v.Note, v.Note}
	case v.Minimum.Total == 0 && pg == nil:
		n := v.Existing() + v.Count[gang.Gated]
		return &groupWait{waitsForGroup, waitsForGroup, fmt.Sprintf("PodGroup %s does not exist, and %s %s for it", id,
			plural.Of(n, "pod"), plural.Choose(n, "waits", "wait"))}
	case v.Quorum():
		return nil
	}
	minimum := v.Minimum
	if minimum.Total == 0 {
		minimum.Total = max(int(pg.Spec.MinMember), 1)
	}
	if v.Existing() == 0 && v.Count[gang.Gated] == 0 && (v.Count[gang.Succeeded]+v.Count[gang.Failed]+v.Count[gang.Terminating] > 0) {
		return nil // its work is over
	}
	return &groupWait{waitsForMembers, waitsForMembers, existing(v, minimum)}
}

// tellWait writes an event about a gang that waits, one for each kind of reason: on its PodGroup or, where there is none, on its
// oldest member. It reports whether the gang is too young to be told, because its members may still be on their way.
func (s *statusWriter) tellWait(ctx context.Context, id gang.ID, v gang.View, pg *schedulingv1alpha1.PodGroup, now time.Time) (early bool) {
	var about runtime.Object
	var since time.Time
	if pod := s.pods.pod(v.Any); pod != nil {
		about, since = pod, pod.CreationTimestamp.Time
	}
	if pg != nil {
		about = referenceTo(pg)
		if since.IsZero() {
			since = pg.CreationTimestamp.Time
		}
	}
	if about == nil || v.Started || v.Met() {
		s.mu.Lock()
		delete(s.waits, id)
		s.mu.Unlock()
		return false
	}
	w := waitOf(id, v, pg)
	if w == nil {
		return false
	}
	if w.reason != waitsForRoom && now.Sub(since) < incompletePause {
		return true
	}
	s.mu.Lock()
	said := s.waits[id]
	if said == nil {
		said = map[string]bool{}
		s.waits[id] = said
	}
	news := !said[w.kind] && len(said) < mostWaits
	said[w.kind] = said[w.kind] || news
	s.mu.Unlock()
	if news {
		s.recorder.WithLogger(klog.FromContext(ctx)).Eventf(about, nil, v1.EventTypeWarning, w.reason, "Scheduling", "%s", w.message)
	}
	return false
}

// referenceTo is what an event about the PodGroup is about.
func referenceTo(pg *schedulingv1alpha1.PodGroup) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: schedulingv1alpha1.SchemeGroupVersion.String(), Kind: "PodGroup",
		Namespace: pg.Namespace, Name: pg.Name, UID: pg.UID}
}
