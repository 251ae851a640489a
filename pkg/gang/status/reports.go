package status

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/wellknown"
)

// The reasons of events about a gang that waits.
const (
	waitsForGroup    = "MissingPodGroup"
	waitsForMembers  = "TooFewMembers"
	waitsForCapacity = "NotEnoughRoom"
)

// mostWaits bounds the events about one gang: reasons in the messages of other plugins may never repeat.
const mostWaits = 10

// groupWait is what a gang waits for.
type groupWait struct {
	reason string
	// kind is equal for waits that differ only in names and amounts.
	kind, message string
}

// waitOf returns what a gang that has not started waits for, nil if it goes on in a moment.
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

// reportWait records an event about a gang that waits, one for each kind of reason: on its PodGroup or, if there is
// none, on its oldest member. If members of a new gang may still be created, it returns after what time to try again.
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

// recordAnomalies records events on the PodGroup about its members, each once: different priorities, or another
// scheduler.
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

// ReferenceTo is the reference to the PodGroup for events.
func ReferenceTo(pg *schedulingv1alpha1.PodGroup) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: schedulingv1alpha1.SchemeGroupVersion.String(), Kind: "PodGroup",
		Namespace: pg.Namespace, Name: pg.Name, UID: pg.UID}
}

// longestWait bounds timers: the clock of the machine may be set meanwhile.
const longestWait = time.Minute

// PodEvents records events about single pods, each once: that a pod is in two groups, cannot end by its deadline, or
// waits for longer than its class allows. After a restart, events about pods that still wait are recorded again.
type PodEvents struct {
	c     *Controller
	queue workqueue.TypedDelayingInterface[gang.Ref]

	mu sync.Mutex
	// told has the last message of each reason, as long as the pod exists.
	told map[gang.UID]map[string]string
}

func (p *PodEvents) start(ctx context.Context) {
	p.queue = workqueue.NewTypedDelayingQueue[gang.Ref]()
	context.AfterFunc(ctx, p.queue.ShutDown)
	for _, class := range p.c.source.Classes.Timed() {
		// Counters start at 0 instead of being absent.
		waitTimeouts.WithLabelValues(class)
	}
	missedDeadlines.WithLabelValues(ofPod)
	missedDeadlines.WithLabelValues(ofGang)
}

// See takes a pod that was added or changed.
func (p *PodEvents) See(pod *v1.Pod) {
	if p.queue != nil && p.c.source.Election.Leads() &&
		(p.c.source.inTwoGroups(pod) || p.c.source.timedClass(pod) != nil || p.hasDeadline(pod)) {
		p.queue.Add(read.RefOf(pod))
	}
}

// Forget forgets a pod that was deleted.
func (p *PodEvents) Forget(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.told, gang.UID(pod.UID))
}

// sync records the events about the pod.
func (p *PodEvents) sync(ctx context.Context, ref gang.Ref) {
	pod := p.c.source.Members.Pod(ref)
	if pod == nil {
		return
	}
	if p.c.source.inTwoGroups(pod) {
		p.warnOnce(ctx, pod, "TwoGroups",
			"the pod is in a native group by spec.schedulingGroup and in a gang by its labels or its owner: the native group "+
				"alone counts")
	}
	if p.hasDeadline(pod) {
		if again := p.syncDeadline(ctx, pod); again > 0 {
			p.queue.AddAfter(ref, again)
		}
	}
	class := p.c.source.timedClass(pod)
	if class == nil {
		return
	}
	// The creation time has no monotonic reading, so that this is by the wall clock.
	if left := time.Until(pod.CreationTimestamp.Add(class.Timeout)); left > 0 {
		p.queue.AddAfter(ref, min(left, longestWait))
		return
	}
	if p.warnOnce(ctx, pod, "WaitTimeout",
		fmt.Sprintf("the pod waits for longer than the %s that its class %s allows (%s)",
			plural.Of(int64(class.Timeout.Seconds()), "second"), class.Name, wellknown.SLAClassKey)) {
		waitTimeouts.WithLabelValues(class.Name).Inc()
	}
}

// warnOnce records an event about the pod if IsNews, and returns that.
func (p *PodEvents) warnOnce(ctx context.Context, pod *v1.Pod, reason, message string) bool {
	news := p.IsNews(pod, reason, message)
	if news {
		p.c.recorder.warn(ctx, pod, reason, message)
	}
	return news
}

// IsNews reports whether the message differs from the last one about the pod for this reason, and remembers it as long
// as the pod exists.
func (p *PodEvents) IsNews(pod *v1.Pod, reason, message string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid := gang.UID(pod.UID)
	if p.told[uid][reason] == message {
		return false
	}
	if p.told == nil {
		p.told = map[gang.UID]map[string]string{}
	}
	if p.told[uid] == nil {
		p.told[uid] = map[string]string{}
	}
	p.told[uid][reason] = message
	return true
}
