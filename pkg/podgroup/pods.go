package podgroup

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/plural"
)

// longestWait is how long a timer is trusted: it measures time that passes, and the clock of the machine may be set.
const longestWait = time.Minute

// podEvents records events about single pods, each once: that a pod is in two groups, or waits for longer than its class allows, which
// a metric counts as well. An earlier scheduler's events are not known: about pods that still wait they are recorded again.
type podEvents struct {
	source   *Source
	recorder events.EventRecorderLogger
	queue    workqueue.TypedDelayingInterface[gang.Ref]

	mu sync.Mutex
	// told holds the last message of each reason, as long as the pod exists.
	told map[gang.UID]map[string]string
}

// see has the pod looked at if there may be something to record.
func (p *podEvents) see(pod *v1.Pod) {
	if p.source.InTwoGroups(pod) || p.source.TimedClass(pod) != nil {
		p.queue.Add(refTo(pod))
	}
}

func (p *podEvents) forget(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.told, gang.UID(pod.UID))
}

func (p *podEvents) run(ctx context.Context) {
	for {
		ref, done := p.queue.Get()
		if done {
			return
		}
		if pod := p.source.Pod(ref); pod != nil && ctx.Err() == nil {
			if again := p.sync(ctx, pod, time.Now()); again > 0 {
				p.queue.AddAfter(ref, again)
			}
		}
		p.queue.Done(ref)
	}
}

// sync records what there is to say about the pod now, and returns after what time to look at it again, 0 for none.
func (p *podEvents) sync(ctx context.Context, pod *v1.Pod, now time.Time) time.Duration {
	if p.source.InTwoGroups(pod) {
		p.warnOnce(ctx, pod, "TwoGroups",
			"the pod is in a native group by spec.schedulingGroup and in a gang by its labels or its owner: the native group alone counts")
	}
	class := p.source.TimedClass(pod)
	if class == nil {
		return 0
	}
	// The creation time has no monotonic reading, so that this is by the clock of the machine.
	if left := pod.CreationTimestamp.Add(class.Timeout).Sub(now); left > 0 {
		return min(left, longestWait)
	}
	if p.warnOnce(ctx, pod, "WaitTimeout", fmt.Sprintf("the pod waits for longer than the %s that its class %s allows (%s)",
		plural.Of(int64(class.Timeout.Seconds()), "second"), class.Name, kubeview.SLAClassKey)) {
		waitTimeouts.WithLabelValues(class.Name).Inc()
	}
	return 0
}

// warnOnce records an event about the pod if that is news, and reports whether it is.
func (p *podEvents) warnOnce(ctx context.Context, pod *v1.Pod, reason, message string) bool {
	news := p.isNews(pod, reason, message)
	if news {
		p.recorder.WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, reason, "Scheduling", "%s", message)
	}
	return news
}

func (p *podEvents) isNews(pod *v1.Pod, reason, message string) bool {
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
