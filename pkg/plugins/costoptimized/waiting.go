package costoptimized

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
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

// waiting knows the pods that are held back by a window, tells each once until when it waits and wakes it then. It
// holds nothing that PreEnqueue would not find out again after a restart.
type waiting struct {
	clock clock.WithTicker
	// changed has room for one token: a pod came that may wake earlier.
	changed chan struct{}

	mu   sync.Mutex
	pods map[types.UID]waitingPod
}

type waitingPod struct {
	namespace, name string
	hold            hold
	told            bool
}

func newWaiting(c clock.WithTicker) *waiting {
	return &waiting{clock: c, changed: make(chan struct{}, 1), pods: map[types.UID]waitingPod{}}
}

// now is the time on the wall, without the reading of the monotonic clock that would hide that it was set.
func (w *waiting) now() time.Time { return w.clock.Now().Round(0) }

// add notes that a pod waits. It is called under the scheduling queue's lock and does no more than that.
func (w *waiting) add(pod *v1.Pod, h hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.pods[pod.UID]; ok && known.hold.same(h) {
		return
	}
	w.pods[pod.UID] = waitingPod{namespace: pod.Namespace, name: pod.Name, hold: h}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// remove forgets a pod that waits no longer.
func (w *waiting) remove(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, uid)
}

// due takes out the pods whose time has come, and returns those that have not been told yet and when the next is due;
// zero when none waits.
func (w *waiting) due(now time.Time) (wake, tell map[types.UID]waitingPod, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake, tell = map[types.UID]waitingPod{}, map[types.UID]waitingPod{}
	for uid, p := range w.pods {
		if !p.hold.until.After(now) {
			wake[uid] = p
			delete(w.pods, uid)
			continue
		}
		if !p.told {
			p.told = true
			w.pods[uid] = p
			tell[uid] = p
		}
		if next.IsZero() || p.hold.until.Before(next) {
			next = p.hold.until
		}
	}
	return wake, tell, next
}

// run wakes pods until ctx ends. It takes the scheduling queue's lock and holds none of its own then.
func (w *waiting) run(ctx context.Context, handle fwk.Handle, pods corelisters.PodLister) {
	for {
		now := w.now()
		wake, tell, next := w.due(now)
		for uid, p := range tell {
			if pod := lookUp(pods, uid, p); pod != nil {
				handle.EventRecorder().Eventf(pod, nil, v1.EventTypeNormal, "WaitingForWindow", "Scheduling", "%s", p.hold)
			}
		}
		awake := map[string]*v1.Pod{}
		for uid, p := range wake {
			if pod := lookUp(pods, uid, p); pod != nil {
				awake[string(uid)] = pod
			}
		}
		if len(awake) > 0 {
			handle.Activate(klog.FromContext(ctx), awake)
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

// lookUp returns the pod if it still waits for a node.
func lookUp(pods corelisters.PodLister, uid types.UID, p waitingPod) *v1.Pod {
	pod, err := pods.Pods(p.namespace).Get(p.name)
	if err != nil || pod.UID != uid || pod.Spec.NodeName != "" {
		return nil
	}
	return pod
}

// forgetter drops pods that are deleted or bound.
func (w *waiting) forgetter() cache.ResourceEventHandler {
	return informers.Events[*v1.Pod]{
		Set: func(_, pod *v1.Pod) {
			if pod.Spec.NodeName != "" {
				w.remove(pod.UID)
			}
		},
		Gone: func(pod *v1.Pod) { w.remove(pod.UID) },
	}
}

// PreEnqueue keeps a pod out of the queue until its window opens or its deadline passes. A pod that cannot be
// understood passes: a cycle rejects it with an event, which a pod outside of the queue does not get.
func (p *Plugin) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	h, bad := p.settings.hours.holding(pod, p.waiting.now())
	if bad != nil || !h.waits() {
		return nil
	}
	return p.holdBack(pod, h)
}

// holdBack keeps a pod waiting and sees to it that it is woken.
func (p *Plugin) holdBack(pod *v1.Pod, h hold) *fwk.Status {
	p.waiting.add(pod, h)
	return cycles.Reject(fwk.UnschedulableAndUnresolvable, h)
}
