package reload

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// quiesceWithin bounds the wait for bindings. What is not bound then is still pending for the next scheduler.
	quiesceWithin = 10 * time.Second
	// lookForBindings is how often the bindings are looked at, and quietLooks how often in a row there must be none: a
	// pod that has just left its wait for the rest of its gang is seen as one that waits.
	lookForBindings, quietLooks = 50 * time.Millisecond, 3
)

// Gate stands between the queue of a scheduler and its cycles. When it is closed no pod passes.
type Gate struct {
	next     func(klog.Logger) (framework.QueuedEntityInfo, error)
	profiles map[string]framework.Framework
	cache    internalcache.Cache
	ctx      context.Context //nolint:containedctx // the queue's function has none

	mu sync.Mutex
	// cycle is set while the scheduler is scheduling a pod.
	cycle, closed bool
	// asked is closed when the scheduler first asks for a pod.
	asked     chan struct{}
	askedOnce sync.Once
}

// NewGate makes the gate of a scheduler, whose NextEntity, profiles and cache are given. Next has to take the place of
// NextEntity before the scheduler runs. A closed gate lets the scheduler stop when ctx ends.
func NewGate(
	ctx context.Context, next func(klog.Logger) (framework.QueuedEntityInfo, error),
	profiles map[string]framework.Framework, cache internalcache.Cache,
) *Gate {
	return &Gate{next: next, profiles: profiles, cache: cache, ctx: ctx, asked: make(chan struct{})}
}

// Asked returns a channel that is closed when the scheduler first asks for a pod.
func (g *Gate) Asked() <-chan struct{} { return g.asked }

// Next returns the next pod of the queue.
func (g *Gate) Next(logger klog.Logger) (framework.QueuedEntityInfo, error) {
	g.mu.Lock()
	g.cycle = false
	g.mu.Unlock()
	g.askedOnce.Do(func() { close(g.asked) })
	entity, err := g.next(logger)
	g.mu.Lock()
	closed := g.closed
	g.cycle = !closed
	g.mu.Unlock()
	if closed {
		// The pod stays pending in the API, where the next scheduler finds it.
		<-g.ctx.Done()
		return nil, nil
	}
	return entity, err
}

// Close lets no pod pass any more and waits until the cycle and the bindings under way have ended. Pods that wait for
// the rest of their gang are left behind: with no pod passing, the rest does not come.
func (g *Gate) Close(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, quiesceWithin)
	defer cancel()
	ticker := time.NewTicker(lookForBindings)
	defer ticker.Stop()
	for quiet := 0; quiet < quietLooks; {
		if g.busy() {
			quiet = 0
		} else {
			quiet++
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			klog.FromContext(ctx).Info("Bindings are still under way, leaving them to the next scheduler")
			return
		}
	}
}

// busy reports whether a pod is being scheduled or bound.
func (g *Gate) busy() bool {
	select {
	case <-g.asked:
	default:
		return false
	}
	g.mu.Lock()
	cycle := g.cycle
	g.mu.Unlock()
	if cycle {
		return true
	}
	waiting := sets.New[string]()
	for _, profile := range g.profiles {
		profile.IterateOverWaitingPods(func(pod fwk.WaitingPod) { waiting.Insert(string(pod.GetPod().UID)) })
	}
	return len(g.cache.Dump().AssumedPods.Difference(waiting)) > 0
}
