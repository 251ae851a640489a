package costoptimized

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"berth.dev/berth/pkg/process/cycles"
	"berth.dev/berth/pkg/process/informers"
)

// longestSleep is how long the waker trusts its timer: timers measure time that passes, windows are of the clock on the
// wall, and that clock may be set or the machine suspended.
const longestSleep = time.Minute

// waiting knows the pods that are held back by a window and wakes each when its time has come. It holds nothing that
// PreEnqueue would not find out again after a restart.
type waiting struct {
	clock clock.WithTicker
	// changed has room for one token: a pod came that may wake earlier.
	changed chan struct{}

	mu   sync.Mutex
	pods map[types.UID]waitingPod
}

type waitingPod struct {
	pod  *v1.Pod
	hold hold
}

func newWaiting(c clock.WithTicker) *waiting {
	return &waiting{clock: c, changed: make(chan struct{}, 1), pods: map[types.UID]waitingPod{}}
}

// now is the time on the wall, without the reading of the monotonic clock that would hide that it was set.
func (w *waiting) now() time.Time { return w.clock.Now().Round(0) }

// add notes that a pod waits and reports whether that is news. It is called under the scheduling queue's lock and does
// no more than that.
func (w *waiting) add(pod *v1.Pod, h hold) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.pods[pod.UID]; ok && known.hold.same(h) {
		return false
	}
	w.pods[pod.UID] = waitingPod{pod: pod, hold: h}
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return true
}

// remove forgets a pod that waits no longer.
func (w *waiting) remove(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, uid)
}

// due takes out the pods whose time has come, and returns when the next is due; zero when none waits.
func (w *waiting) due(now time.Time) (wake map[string]*v1.Pod, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake = map[string]*v1.Pod{}
	for uid, p := range w.pods {
		if !p.hold.until.After(now) {
			wake[string(uid)] = p.pod
			delete(w.pods, uid)
		} else if next.IsZero() || p.hold.until.Before(next) {
			next = p.hold.until
		}
	}
	return wake, next
}

// run wakes pods until ctx ends. It takes the scheduling queue's lock and holds none of its own then.
func (w *waiting) run(ctx context.Context, handle fwk.Handle) {
	for {
		now := w.now()
		wake, next := w.due(now)
		if len(wake) > 0 {
			handle.Activate(klog.FromContext(ctx), wake)
		}
		if !w.sleep(ctx, now, next) {
			return
		}
	}
}

// sleep returns when the next pod is due, another has come, or it is time to look at the clock; false when ctx ends.
func (w *waiting) sleep(ctx context.Context, now, next time.Time) bool {
	var alarm <-chan time.Time
	if !next.IsZero() {
		timer := w.clock.NewTimer(min(next.Sub(now), longestSleep))
		defer timer.Stop()
		alarm = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.changed:
	case <-alarm:
	}
	return true
}

// forgetter drops pods that are deleted or bound.
func (w *waiting) forgetter() cache.ResourceEventHandler {
	return informers.Events(func(_, pod *v1.Pod) {
		if pod.Spec.NodeName != "" {
			w.remove(pod.UID)
		}
	}, func(pod *v1.Pod) { w.remove(pod.UID) })
}

// PreEnqueue keeps a pod out of the queue until its window opens or its deadline passes. A pod that cannot be
// understood passes: a cycle rejects it with an event, which a pod outside of the queue does not get.
func (p *Plugin) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	h, bad := p.settings.holding(pod, p.waiting.now())
	if bad != nil || !h.waits() {
		return nil
	}
	return p.holdBack(pod, h)
}

// holdBack keeps a pod waiting, tells it once until when, and sees to it that it is woken. Events are sent in the
// background.
func (p *Plugin) holdBack(pod *v1.Pod, h hold) *fwk.Status {
	if p.waiting.add(pod, h) {
		p.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeNormal, "WaitingForWindow", "Scheduling", "%s", h)
	}
	return cycles.Reject(fwk.UnschedulableAndUnresolvable, h)
}
