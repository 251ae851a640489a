package podgroup

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/wellknown"
)

// longestWait is how long a timer is trusted: it measures time that passes, and the clock of the machine may be set.
const longestWait = time.Minute

// PodEvents records events about single pods, each once: that a pod is in two groups, cannot end by its deadline, which
// a condition says as well, or waits for longer than its class allows, which a metric counts. An earlier scheduler's
// events are not known: about pods that still wait they are recorded again.
type PodEvents struct {
	c     *Controller
	queue workqueue.TypedDelayingInterface[gang.Ref]

	mu sync.Mutex
	// told holds the last message of each reason, as long as the pod exists.
	told map[gang.UID]map[string]string
}

func (p *PodEvents) start(ctx context.Context) {
	p.queue = workqueue.NewTypedDelayingQueue[gang.Ref]()
	context.AfterFunc(ctx, p.queue.ShutDown)
	for _, class := range p.c.source.Classes.Timed() {
		// A counter that is absent until something happens looks like one that is missing.
		waitTimeouts.WithLabelValues(class)
	}
	missedDeadlines.WithLabelValues(ofPod)
	missedDeadlines.WithLabelValues(ofGang)
}

// See notes that the pod came or changed.
func (p *PodEvents) See(pod *v1.Pod) {
	if p.queue != nil && p.c.leader.Leading() && (p.c.source.inTwoGroups(pod) || p.c.source.timedClass(pod) != nil ||
		p.hasDeadline(pod)) {
		p.queue.Add(gangview.RefOf(pod))
	}
}

// Forget notes that the pod is gone.
func (p *PodEvents) Forget(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.told, gang.UID(pod.UID))
}

// sync records what there is to say about the pod.
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
	// The creation time has no monotonic reading, so that this is by the clock of the machine.
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

// warnOnce records an event about the pod if that is news, and reports whether it is.
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
