package status

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
)

// The reasons of events about a gang that waits.
const (
	waitsForGroup    = "MissingPodGroup"
	waitsForMembers  = "TooFewMembers"
	waitsForCapacity = "NotEnoughRoom"
)

// mostWaits bounds the events about one gang: reasons in the messages of other plugins may never repeat.
const mostWaits = 10

// groupWait is for what a gang waits.
type groupWait struct {
	reason string
	// kind is equal for waits that differ in names and amounts alone.
	kind, message string
}

// waitOf returns for what a gang waits that has not started, nil if it goes on in a moment.
func waitOf(id gang.ID, v *gang.View, pg *schedulingv1alpha1.PodGroup) *groupWait {
	switch {
	case v.Reason != nil:
		return &groupWait{waitsForCapacity, v.Reason.Kind(), v.Reason.String()}
	case v.Minimum.Total == 0 && pg == nil && v.Note != "":
		return &groupWait{waitsForGroup, v.Note, v.Note}
	case v.Minimum.Total == 0 && pg == nil:
		n := v.Existing() + v.Count[gang.Gated]
		return &groupWait{waitsForGroup, waitsForGroup, fmt.Sprintf("PodGroup %s does not exist, and %s %s for it", id,
			plural.Of(n, "pod"), plural.Choose(n, "waits", "wait"))}
	case v.Quorum():
		return nil
	}
	if v.Existing() == 0 && v.Count[gang.Gated] == 0 &&
		(v.Count[gang.Succeeded]+v.Count[gang.Failed]+v.Count[gang.Terminating] > 0) {
		return nil // its work is over
	}
	return &groupWait{waitsForMembers, waitsForMembers, existing(v, minimumOf(v, pg))}
}

// reportWait records an event about a gang that waits, one for each kind of reason: on its PodGroup or, where there is
// none, on its oldest member. It returns after what time to try again if the gang is so young that its members may
// still be on their way.
func (c *Controller) reportWait(ctx context.Context, id gang.ID, s *State, pg *schedulingv1alpha1.PodGroup, r *record,
	now time.Time) time.Duration {
	var about runtime.Object
	var since time.Time
	if pod := s.liveExample(); pod != nil {
		about, since = pod, pod.CreationTimestamp.Time
	}
	if pg != nil {
		about = ReferenceTo(pg)
		if since.IsZero() {
			since = pg.CreationTimestamp.Time
		}
	}
	if about == nil || s.Started || s.Met() {
		r.waits = nil
		return 0
	}
	w := waitOf(id, &s.View, pg)
	if w == nil {
		return 0
	}
	if young := incompletePause - now.Sub(since); w.reason != waitsForCapacity && young > 0 {
		return young
	}
	if r.waits[w.kind] || len(r.waits) == mostWaits {
		return 0
	}
	if r.waits == nil {
		r.waits = map[string]bool{}
	}
	r.waits[w.kind] = true
	c.recorder.warn(ctx, about, w.reason, w.message)
	return 0
}

// recordAnomalies records on the PodGroup what is unusual about its members, each once: different priorities, or a
// scheduler that does not know gangs.
func (c *Controller) recordAnomalies(ctx context.Context, s *State, pg *schedulingv1alpha1.PodGroup, r *record) {
	found := map[string]string{}
	if len(s.Priorities) > 0 {
		found["MixedPriorities"] = fmt.Sprintf("members have priorities %s; the gang counts as its least, %d",
			strings.Trim(fmt.Sprint(s.Priorities), "[]"), s.Priorities[0])
	}
	if pod := s.liveExample(); pod != nil && s.Foreign > 0 && s.OtherScheduler != "" {
		found["ForeignScheduler"] = fmt.Sprintf(
			"%d pending %s placed by another scheduler: pod %s names the scheduler %s, which is no profile of this one",
			s.Foreign, plural.Choose(s.Foreign, "member is", "members are"), pod.Name, s.OtherScheduler)
	}
	for reason, message := range found {
		if r.anomalies[reason] != message {
			c.recorder.warn(ctx, ReferenceTo(pg), reason, message)
		}
	}
	r.anomalies = found
}

// ReferenceTo is what an event about the PodGroup is about.
func ReferenceTo(pg *schedulingv1alpha1.PodGroup) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: schedulingv1alpha1.SchemeGroupVersion.String(), Kind: "PodGroup",
		Namespace: pg.Namespace, Name: pg.Name, UID: pg.UID}
}
