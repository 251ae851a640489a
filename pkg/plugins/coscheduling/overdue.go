package coscheduling

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

// overdue tells of pods that wait for longer than the timeout of their class: one event and one count for each. It runs
// beside the scheduling cycles and holds nothing back.
type overdue struct {
	changed chan struct{}

	mu    sync.Mutex
	waits map[apitypes.UID]*timedWait
	byEnd timedWaits
}

// timedWait is a pod that waits, and when its class's timeout ends.
type timedWait struct {
	pod   gang.Ref
	class string
	limit time.Duration
	end   time.Time
	// at is its place in the heap, told once it has left that because the pod was told.
	at int
}

const toldPlace = -1

func newOverdue() *overdue {
	return &overdue{changed: make(chan struct{}, 1), waits: map[apitypes.UID]*timedWait{}}
}

// watchOverdue follows the pods if any class has a timeout.
func (f *feed) watchOverdue(profile framework.Framework) error {
	timed := f.classes.order.Timed()
	if len(timed) == 0 {
		return nil
	}
	for _, class := range timed {
		// A counter that is absent until something happens looks like one that is not there.
		waitTimeouts.WithLabelValues(class)
	}
	see := func(pod *v1.Pod) { f.overdue.see(pod, f.timedClass(pod)) }
	factory := profile.SharedInformerFactory()
	_, err := informers.Handle(factory, factory.Core().V1().Pods().Informer(), handlers(see,
		func(_, pod *v1.Pod) { see(pod) },
		func(pod *v1.Pod) { f.overdue.see(pod, nil) }))
	if err != nil {
		return fmt.Errorf("watching pods for timeouts: %w", err)
	}
	go f.tellOverdue(f.ctx)
	return nil
}

// timedClass returns the class by whose timeout the pod waits, nil if it does not wait, or has none, or is another
// scheduler's.
func (c *coordinator) timedClass(pod *v1.Pod) *sla.Class {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed ||
		c.profiles.Of(pod) == nil {
		return nil
	}
	class, _ := podview.FindSLAClass(c.classes.order, pod)
	if class == nil || class.Timeout == 0 {
		return nil
	}
	return class
}

// see notes that the pod waits by the timeout of a class, or of none.
func (o *overdue) see(pod *v1.Pod, class *sla.Class) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.waits[pod.UID]
	if known != nil && class != nil && known.class == class.Name {
		return
	}
	if known != nil {
		delete(o.waits, pod.UID)
		if known.at != toldPlace {
			heap.Remove(&o.byEnd, known.at)
		}
	}
	if class == nil {
		return
	}
	w := &timedWait{pod: gang.Ref{UID: gang.UID(pod.UID), Namespace: pod.Namespace, Name: pod.Name}, class: class.Name, limit: class.Timeout,
		end: pod.CreationTimestamp.Add(class.Timeout)}
	o.waits[pod.UID] = w
	heap.Push(&o.byEnd, w)
	if w.at == 0 {
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}
}

// due takes out the waits that have ended, and returns when the next one does, zero if none will.
func (o *overdue) due(now time.Time) (ended []*timedWait, next time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.byEnd) > 0 {
		first := o.byEnd[0]
		if now.Before(first.end) {
			return ended, first.end
		}
		heap.Pop(&o.byEnd)
		first.at = toldPlace
		ended = append(ended, first)
	}
	return ended, time.Time{}
}

// tellOverdue tells of waits that end, in the scheduler that leads. What one before it has told is not known: it tells
// once more of pods that wait still.
func (f *feed) tellOverdue(ctx context.Context) {
	if !f.status.awaitLeading(ctx) {
		return
	}
	for {
		// Without the reading of the monotonic clock, which stands still while a machine sleeps.
		now := time.Now().Round(0)
		ended, next := f.overdue.due(now)
		for _, w := range ended {
			if pod := f.pods.pod(w.pod); pod != nil && pod.Spec.NodeName == "" {
				waitTimeouts.WithLabelValues(w.class).Inc()
				f.recorder.WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "WaitTimeout", "Scheduling",
					"the pod waits for longer than the %s that its class %s allows (%s)", plural.Of(int64(w.limit.Seconds()), "second"), w.class, wellknown.SLAClassKey)
			}
		}
		if !f.overdue.sleep(ctx, now, next) {
			return
		}
	}
}

// longestSleep is how long a timer is trusted: it measures time that passes, and the clock on the wall may be set.
const longestSleep = time.Minute

// sleep returns when the next wait ends, another has come that may end earlier, or it is time to look at the clock;
// false when ctx ends.
func (o *overdue) sleep(ctx context.Context, now, next time.Time) bool {
	pause := longestSleep
	if !next.IsZero() {
		pause = min(pause, next.Sub(now))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-o.changed:
	case <-timer.C:
	}
	return true
}

// timedWaits is a heap of waits, the first to end at the top.
type timedWaits []*timedWait

// Len is part of heap.Interface.
func (h timedWaits) Len() int { return len(h) }

// Less is part of heap.Interface.
func (h timedWaits) Less(i, j int) bool { return h[i].end.Before(h[j].end) }

// Swap is part of heap.Interface.
func (h timedWaits) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push is part of heap.Interface.
func (h *timedWaits) Push(x any) {
	w := x.(*timedWait)
	w.at = len(*h)
	*h = append(*h, w)
}

// Pop is part of heap.Interface.
func (h *timedWaits) Pop() any {
	old := *h
	last := len(old) - 1
	w := old[last]
	old[last] = nil
	*h = old[:last]
	return w
}
