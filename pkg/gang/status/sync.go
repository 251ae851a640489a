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
	// incompletePause is how long members may wait for siblings to be created before it is reported: most gangs are
	// created in one go.
	incompletePause = 3 * time.Second
	// waitingForGang is the reason in PodScheduled of members that wait for siblings to be created. It is not
	// Unschedulable, at which autoscalers would add nodes for a gang that cannot use them yet.
	waitingForGang = "WaitingForGang"
)

// sync brings what users see of the gang in line with its state, and returns after what time to look at it again, 0 for
// none.
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
	// A gang whose members end does not start in a moment, and a PodGroup that was just created gets its first status
	// at once.
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
	// There are many more members than PodGroups: their messages come after those of the PodGroup.
	later, err := c.writeMembers(ctx, &s, r, now)
	if err != nil {
		return 0, err
	}
	if again = sooner(again, later); again == 0 {
		r.startBy = time.Time{}
	}
	return again, nil
}

// writeGroup writes the status of the PodGroup. If only messages differ it returns after what time they may be written.
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

// clearNominations takes back the nominations of the members of a gang that does not fit. They are left by an earlier
// scheduler, or by this one: where it writes to which node a pod is on its way, the pod may be refused before the write
// is seen, and then nothing takes it back. Others of the same or of lower priority would be kept off a node that the
// gang does not use.
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

// writeMembers writes to members that are held for their gang why they are pending, and returns after what time the
// rest may be written.
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
			// On its way: planned in a moment or being given a node.
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

// writeMember writes to the member why it is pending.
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
	// No cycle says it, and kubectl describe does not print conditions. What differs in amounts alone is no news.
	if kind := s.Held[ref].Kind(); reason == v1.PodReasonUnschedulable && c.Pods.IsNews(pod, kind, kind) {
		c.recorder.warn(ctx, pod, "FailedScheduling", why)
	}
	return nil
}

// heldReason is the reason in PodScheduled of members that are held for their gang.
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
	// settleDelay is the time from a change to its write: further changes come meanwhile, and one write says what
	// several would.
	settleDelay = 1100 * time.Millisecond
	// generatedDelay lets the handlers of one event finish.
	generatedDelay = 100 * time.Millisecond
	// startDelay is the time that a gang is given that is expected to start in a moment.
	startDelay = 3 * time.Second
	// writePause is the least time between two writes of one PodGroup.
	writePause = 1100 * time.Millisecond
	// messagePause is the least time between two writes that change only why a gang or its members are pending: the
	// numbers in it change with every pod that comes or goes.
	messagePause = 3 * time.Second
	// messagesPerSecond is how many PodGroups and members have their messages changed each second, messagesAtOnce after a
	// quiet time: where many gangs wait, every pod that comes or goes changes the numbers in the messages of all.
	messagesPerSecond, messagesAtOnce = 100, 1000
)

// record is what the controller remembers of a gang. One sync at a time uses it.
type record struct {
	// wrote is when the status was last written.
	wrote time.Time
	// reworded is when messages that alone had changed were last written, slot when the next may be; zero until that is
	// asked.
	reworded, slot time.Time
	// startBy is until when a gang is given time that is expected to start.
	startBy time.Time
	// waits are the kinds of reasons for which the gang was reported to wait.
	waits map[string]bool
	// anomalies are the last messages about odd members, by reason.
	anomalies map[string]string
	// late is the last message about a deadline that cannot be met.
	late string
	// foreign is what was last written to the group of another scheduler, by object if that is a tree; foreignKind is
	// without the text.
	foreign     map[grouptree.Key]string
	foreignKind string
	// refused is the pause after the last PodGroup that was refused, 0 if none was; uncreatable is set if none can ever be
	// created.
	refused     time.Duration
	uncreatable bool
}

// reword returns 0 if messages of the gang that alone have changed may be written in the sync that began now, else the
// time after which to ask again.
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

// pause returns how long the sync of the gang has to wait, 0 if it begins. A gang is underway that is expected to start
// in a moment.
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
