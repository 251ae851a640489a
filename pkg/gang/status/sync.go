package status

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/podview"
)

const (
	// incompletePause is how long members wait for siblings to be created before that is reported: most gangs are created
	// at once.
	incompletePause = 3 * time.Second
	// waitingForGang is the reason in PodScheduled of members that wait for siblings to be created. It is not
	// Unschedulable, at which autoscalers would add nodes for a gang that cannot use them yet.
	waitingForGang = "WaitingForGang"
)

// sync writes what users see of the gang, and returns after what time to sync it again, 0 for never.
func (c *Controller) sync(ctx context.Context, id gang.ID, now time.Time) (again time.Duration, err error) {
	s, pg := c.state(id), c.source.Members.Stored(id)
	remembered, _ := c.records.LoadOrStore(id, &record{})
	r := remembered.(*record)
	if !s.Known {
		*r = record{waits: r.waits}
		if pg == nil {
			c.records.Delete(id)
		}
	}
	// A gang with members that have succeeded does not start in a moment, and a new PodGroup gets its first status at
	// once.
	created := pg != nil && read.Generated(pg) && pg.Status.Phase == ""
	if pause := r.pause(s.Known && s.Underway() && s.Count[gang.Succeeded] == 0 && !created, now); pause > 0 {
		return pause, nil
	}
	again = c.reportWait(ctx, id, &s, pg, r, now)
	shown, pause, err := c.keep(ctx, id, &s, pg, r)
	if err != nil {
		return 0, err
	}
	again = sooner(again, pause)
	if shown {
		c.recordAnomalies(ctx, &s, pg, r)
		c.reportDeadline(ctx, &s, pg, r, now)
		if pause, err = c.writeGroup(ctx, &s, pg, r, now); err != nil {
			return 0, err
		}
		again = sooner(sooner(again, pause), s.lookAtDeadline(pg, now))
	}
	foreignPause, err := c.writeForeign(ctx, id, &s, r, now)
	if err != nil {
		return 0, err
	}
	again = sooner(again, foreignPause)
	if s.Reason != nil {
		if err := c.api.clearNominations(ctx, &s); err != nil {
			return 0, err
		}
	}
	// Members come last, because there are many more of them than PodGroups.
	later, err := c.writeMembers(ctx, &s, r, now)
	if err != nil {
		return 0, err
	}
	if again = sooner(again, later); again == 0 {
		r.startBy = time.Time{}
	}
	return again, nil
}

// writeGroup writes the status of the PodGroup. If only messages differ, it returns after what time to write them.
func (c *Controller) writeGroup(ctx context.Context, s *State, pg *schedulingv1alpha1.PodGroup, r *record,
	now time.Time) (time.Duration, error) {
	status := wantedStatus(pg, s, now)
	if equality.Semantic.DeepEqual(status, pg.Status) {
		return 0, nil
	}
	if equality.Semantic.DeepEqual(withoutMessages(status), withoutMessages(pg.Status)) {
		if pause := r.reword(c.messages, s, now); pause > 0 {
			return pause, nil
		}
	}
	r.wrote = now
	return 0, c.api.patch(ctx, pg,
		map[string]any{"metadata": map[string]any{"uid": pg.UID}, "status": explicit(status)}, "status")
}

// clearNominations removes the nominated nodes of the members of a gang that does not fit: they would keep pods of the
// same or a lower priority off nodes that the gang does not use. They are left over from an earlier scheduler, or from
// this one, if a pod was rejected before the write of its nomination was seen.
func (c Client) clearNominations(ctx context.Context, s *State) error {
	for _, pod := range s.Members {
		if !waits(pod) || pod.Status.NominatedNodeName == "" {
			continue
		}
		if err := c.patchPodStatus(ctx, pod, map[string]any{"nominatedNodeName": nil}); err != nil {
			return err
		}
	}
	return nil
}

// writeMembers writes the reason why they are pending to members that wait for their gang, and returns after what time
// to write the rest.
func (c *Controller) writeMembers(ctx context.Context, s *State, r *record,
	now time.Time) (again time.Duration, err error) {
	var reworded []*v1.Pod
	for _, pod := range s.Members {
		why := s.Held[read.RefOf(pod)]
		if why == nil || !waits(pod) {
			continue
		}
		reason := heldReason(s)
		_, have := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
		switch {
		case have != nil && have.Status == v1.ConditionFalse && have.Reason == reason && have.Message == why.String():
			continue
		case reason == v1.PodReasonUnschedulable && s.Reason == nil:
			// It is planned in a moment, or being bound.
			continue
		case have != nil && have.Reason == reason:
			reworded = append(reworded, pod)
			continue
		case have == nil && reason == waitingForGang && now.Sub(pod.CreationTimestamp.Time) < incompletePause:
			again = sooner(again, incompletePause-now.Sub(pod.CreationTimestamp.Time))
			continue
		}
		r.reworded = now
		if err := c.writeMember(ctx, s, pod, now); err != nil {
			return 0, err
		}
	}
	if len(reworded) == 0 {
		return again, nil
	}
	n := min(len(reworded), messagesAtOnce)
	if pause := r.reword(c.messages, s, now); pause > 0 {
		return sooner(again, pause), nil
	}
	for _, pod := range reworded[:n] {
		if err := c.writeMember(ctx, s, pod, now); err != nil {
			return 0, err
		}
	}
	if n < len(reworded) {
		r.reworded = time.Time{}
		again = sooner(again, writePause)
	}
	return again, nil
}

// writeMember writes the reason why the member is pending.
func (c *Controller) writeMember(ctx context.Context, s *State, pod *v1.Pod, now time.Time) error {
	ref := read.RefOf(pod)
	reason, why := heldReason(s), s.Held[ref].String()
	condition := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: reason, Message: why,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), ObservedGeneration: pod.Generation}
	if _, have := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); have != nil && have.Status == condition.Status {
		condition.LastTransitionTime = have.LastTransitionTime
	}
	if err := c.api.patchPodStatus(ctx, pod, map[string]any{"conditions": []v1.PodCondition{condition}}); err != nil {
		return err
	}
	// No scheduling cycle records the event, and kubectl describe does not print conditions.
	if kind := s.Held[ref].Kind(); reason == v1.PodReasonUnschedulable && c.Pods.IsNews(pod, kind, kind) {
		c.recorder.warn(ctx, pod, "FailedScheduling", why)
	}
	return nil
}

// heldReason is the reason in PodScheduled of members that wait for their gang.
func heldReason(s *State) string {
	if s.Minimum.Total > 0 && s.Quorum() {
		return v1.PodReasonUnschedulable
	}
	return waitingForGang
}

// waits reports whether the pod has no node and has not ended.
func waits(pod *v1.Pod) bool { return pod.Spec.NodeName == "" && !podview.Finished(pod) }

// example returns the oldest member, which may have ended, or nil; see gang.View.
func (s *State) example() *v1.Pod {
	for _, pod := range s.Members {
		if read.RefOf(pod) == s.Any {
			return pod
		}
	}
	return nil
}

// liveExample is the same, but nil if it has ended.
func (s *State) liveExample() *v1.Pod {
	if pod := s.example(); pod != nil && !podview.Finished(pod) {
		return pod
	}
	return nil
}

const (
	// settleDelay is the time from a change to its write, which then includes further changes.
	settleDelay = 1100 * time.Millisecond
	// generatedDelay lets the handlers of one event finish.
	generatedDelay = 100 * time.Millisecond
	// startDelay is the longest delay of writes about a gang that is expected to start in a moment.
	startDelay = 3 * time.Second
	// writePause is the least time between two writes of one PodGroup.
	writePause = 1100 * time.Millisecond
	// messagePause is the least time between two writes that change only messages: their numbers change with every pod
	// that is added or deleted.
	messagePause = 3 * time.Second
	// messagesPerSecond and messagesAtOnce limit such writes for all gangs: if many gangs wait, the messages of all
	// change.
	messagesPerSecond, messagesAtOnce = 100, 1000
)

// record is what the controller remembers of a gang. One sync at a time uses it.
type record struct {
	// wrote is when the status was last written.
	wrote time.Time
	// reworded is when only messages were last written, and slot when the limiter allows the next, zero if it was not
	// asked.
	reworded, slot time.Time
	// startBy is until when writes about a gang that is expected to start are delayed.
	startBy time.Time
	// waits are the kinds of waits that were reported.
	waits map[string]bool
	// anomalies are the last messages of recordAnomalies, by reason.
	anomalies map[string]string
	// late is the last message about a missed deadline.
	late string
	// foreign is what was last written to the group of another scheduler, by object if that is a tree; foreignKind is the
	// same without texts.
	foreign     map[grouptree.Key]string
	foreignKind string
	// refused is the last pause after the API server refused the PodGroup, 0 if it did not.
	refused time.Duration
}

// reword returns 0 if the sync that began now may write changes of messages only, else after what time to ask again.
func (r *record) reword(limiter *rate.Limiter, s *State, now time.Time) time.Duration {
	if r.reworded.Equal(now) {
		return 0
	}
	if pause := messagePause - now.Sub(r.reworded); pause > 0 {
		return pause
	}
	if r.slot.IsZero() {
		r.slot = now.Add(limiter.ReserveN(now, min(1+len(s.Held), messagesAtOnce)).DelayFrom(now))
	}
	if pause := r.slot.Sub(now); pause > 0 {
		return pause
	}
	r.reworded, r.slot = now, time.Time{}
	return 0
}

// pause returns after what time to sync the gang, 0 for now. underway is set if it is expected to start in a moment.
func (r *record) pause(underway bool, now time.Time) time.Duration {
	switch {
	case !underway:
		r.startBy = time.Time{}
	case r.startBy.IsZero():
		r.startBy = now.Add(startDelay - settleDelay)
	}
	return max(0, writePause-now.Sub(r.wrote), r.startBy.Sub(now))
}

// sooner is the shorter of two pauses; 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
