package costoptimized

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// longestSleep bounds a timer: timers measure elapsed time and windows wall-clock time, and the clock may be set or the
// machine suspended meanwhile.
const longestSleep = time.Minute

// waiting keeps the pods that wait for a window and wakes each in time. After a restart, PreEnqueue finds them again.
type waiting struct {
	clock clock.WithTicker
	// changed wakes the loop when a pod has come that may be due earlier. It has a buffer of one.
	changed chan struct{}

	mu   sync.Mutex
	pods map[types.UID]waitingPod
}

type waitingPod struct {
	pod  *v1.Pod
	wait wait
}

func newWaiting(c clock.WithTicker) *waiting {
	return &waiting{clock: c, changed: make(chan struct{}, 1), pods: map[types.UID]waitingPod{}}
}

// now is the wall-clock time, without the monotonic reading, which would hide changes of the clock.
func (w *waiting) now() time.Time { return w.clock.Now().Round(0) }

// add records that a pod waits and reports whether that is new. It is called under the scheduling queue's lock, and
// must be quick.
func (w *waiting) add(pod *v1.Pod, reason wait) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.pods[pod.UID]; ok && known.wait.same(reason) {
		return false
	}
	w.pods[pod.UID] = waitingPod{pod: pod, wait: reason}
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

// due removes and returns the pods that are due, and the time when the next one is; zero when none waits.
func (w *waiting) due(now time.Time) (wake map[string]*v1.Pod, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake = map[string]*v1.Pod{}
	for uid, p := range w.pods {
		if !p.wait.until.After(now) {
			wake[string(uid)] = p.pod
			delete(w.pods, uid)
		} else if next.IsZero() || p.wait.until.Before(next) {
			next = p.wait.until
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

// sleep returns when the next pod is due, another has come, or longestSleep is over; false when ctx ends.
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

// PreEnqueue keeps a pod out of the queue until its window opens or its deadline passes. A pod with a bad value passes:
// a cycle rejects it with an event, which pods outside of the queue do not get.
func (p *Plugin) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	reason, bad := p.settings.waitFor(pod, p.waiting.now())
	if bad != nil || !reason.waits() {
		return nil
	}
	return p.postpone(pod, reason)
}

// postpone makes a pod wait, has it woken in time, and records one event.
func (p *Plugin) postpone(pod *v1.Pod, reason wait) *fwk.Status {
	if p.waiting.add(pod, reason) {
		p.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeNormal, "WaitingForWindow", "Scheduling", "%s", reason)
	}
	return process.Reject(fwk.UnschedulableAndUnresolvable, reason)
}

// wait is what a pod waits for. The zero value is nothing.
type wait struct {
	window string
	until  time.Time
	// end says in messages what happens at that time.
	end string
}

// What ends the waiting of a pod.
const (
	endOpens    = "it opens at"
	endDeadline = "the pod's deadline, before it opens, is"
	endStart    = "the pod has to start, before it opens, to end by its deadline, at"
)

// same reports whether both wait for the same thing until the same instant, however that is written.
func (w wait) same(o wait) bool {
	return w.window == o.window && w.end == o.end && w.until.Equal(o.until)
}

func (w wait) waits() bool { return w.window != "" }

// String is the message to users: what the pod waits for and until when.
func (w wait) String() string {
	return fmt.Sprintf("%s: %s %s", w.Kind(), w.end, w.until.Format(time.RFC3339))
}

// Kind is the message without the time, which may differ from pod to pod.
func (w wait) Kind() string { return fmt.Sprintf("waiting for price window %q", w.window) }

// waitFor returns what the pod has to wait for at an instant. The window that the pod names takes precedence over those
// that select it.
func (s *settings) waitFor(pod *v1.Pod, now time.Time) (wait, *wellknown.BadValue) {
	own, bad := priceview.PodStartWindow(pod)
	if bad != nil {
		return wait{}, bad
	}
	all := s.values.Windows
	i := slices.IndexFunc(all, func(w config.NamedWindow) bool {
		if priceview.NamesWindow(pod) {
			return w.Name == own.Name
		}
		return w.Selector.Matches(labels.Set(pod.Labels))
	})
	if i < 0 {
		if priceview.NamesWindow(pod) {
			return wait{}, &wellknown.BadValue{
				Object: "pod", Kind: "annotation", Key: wellknown.StartWindowKey, Value: own.Name, Allowed: namesOf(all),
			}
		}
		return wait{}, nil
	}
	named := all[i]
	if named.Window.Open(now) || !own.Deadline.IsZero() && !now.Before(own.Deadline) {
		return wait{}, nil
	}
	w := wait{window: named.Name, end: endOpens}
	next, opens := named.Window.NextOpen(now)
	if w.until = next; !opens {
		// Changes of the clock skip the window for two weeks. Check again in one.
		w.until = now.AddDate(0, 0, 7)
	}
	if !own.Deadline.IsZero() && (!opens || own.Deadline.Before(w.until)) {
		w.until, w.end = own.Deadline, endDeadline
		if own.Ends {
			w.end = endStart
		}
	}
	return w, nil
}

func namesOf(all []config.NamedWindow) string {
	if len(all) == 0 {
		return "a price window: this profile has none"
	}
	names := make([]string, 0, len(all))
	for _, w := range all {
		names = append(names, fmt.Sprintf("%q", w.Name))
	}
	return "one of this profile's price windows: " + strings.Join(names, ", ")
}
