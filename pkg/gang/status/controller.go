package status

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
)

const (
	// workers sync gangs, at most workersOfNamespace of them in one namespace, whose webhooks may hang.
	workers            = 128
	workersOfNamespace = 2
	// A sync that fails is tried again after retryFirst, then after twice as long up to retryLast.
	retryFirst, retryLast = time.Second, 30 * time.Second
	// tallyEvery is how often the metrics count gangs.
	tallyEvery = 5 * time.Second
)

// Controller writes what users see of gangs.
type Controller struct {
	source   Source
	api      Client
	recorder recorder
	queue    workqueue.TypedRateLimitingInterface[gang.ID]
	// Pods records events about single pods.
	Pods PodEvents
	// records holds the *record of each gang that exists.
	records    sync.Map
	namespaces namespaces
	// reserved is what is kept for the gang that has a reservation.
	reserved atomic.Pointer[Reservation]
	// messages limits the writes that change only messages.
	messages *rate.Limiter
}

// New returns a controller that is not started. Until then it ignores what is enqueued.
func New(source Source) *Controller {
	c := &Controller{source: source, messages: rate.NewLimiter(messagesPerSecond, messagesAtOnce)}
	c.Pods.c = c
	return c
}

// Start runs the controller once the informers have synced and this process leads, until ctx is done.
func (c *Controller) Start(ctx context.Context, client Client, to events.EventRecorderLogger,
	synced []cache.DoneChecker) {
	c.api, c.recorder = client, recorder{to}
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[gang.ID](retryFirst,
		retryLast))
	context.AfterFunc(ctx, c.queue.ShutDown)
	c.Pods.start(ctx)
	go func() {
		if c.source.Election.AwaitLead(ctx, synced...) {
			c.run(ctx)
		}
	}()
}

func (c *Controller) run(ctx context.Context) {
	for _, key := range c.source.Members.Groups.ListKeys() {
		namespace, name, _ := strings.Cut(key, "/")
		c.Enqueue(gang.ID{Namespace: namespace, Name: name})
	}
	for _, pod := range c.source.Members.Pods() {
		c.Pods.See(pod)
		if id := c.source.Members.ID(pod); id != (gang.ID{}) {
			c.Enqueue(id)
		}
	}
	for range workers {
		go drain(ctx, c.queue, c.try)
	}
	go drain(ctx, c.Pods.queue, c.Pods.sync)
	wait.UntilWithContext(ctx, func(context.Context) {
		for state, n := range c.source.Ledger.Tally() {
			gangsByState.WithLabelValues(state).Set(float64(n))
		}
	}, tallyEvery)
}

// Enqueue has the gang synced after a moment, so that several changes are written together.
func (c *Controller) Enqueue(id gang.ID) { c.enqueue(id, settleDelay) }

// EnqueueGenerated has the gang synced because the informer has seen the PodGroup that the controller created.
func (c *Controller) EnqueueGenerated(id gang.ID) { c.enqueue(id, generatedDelay) }

// enqueue ignores everything until this process leads: run then enqueues what exists.
func (c *Controller) enqueue(id gang.ID, delay time.Duration) {
	if c.queue != nil && c.source.Election.Leads() {
		c.queue.AddAfter(id, delay)
	}
}

// drain calls sync with each item of the queue until ctx is done.
func drain[T comparable](ctx context.Context, queue workqueue.TypedInterface[T], sync func(context.Context, T)) {
	for {
		item, done := queue.Get()
		if done {
			return
		}
		if ctx.Err() == nil {
			sync(ctx, item)
		}
		queue.Done(item)
	}
}

// try syncs the gang if its namespace has a free worker, and enqueues it again if that is needed.
func (c *Controller) try(ctx context.Context, id gang.ID) {
	if !c.namespaces.enter(id) {
		return
	}
	again, err := c.sync(ctx, id, time.Now())
	if next, waits := c.namespaces.leave(id); waits {
		c.queue.Add(next)
	}
	if err != nil {
		if c.queue.NumRequeues(id) == 0 {
			klog.FromContext(ctx).Error(err, "Writing the state of a gang failed, trying again", "gang", id)
		}
		c.queue.AddRateLimited(id)
		return
	}
	c.queue.Forget(id)
	if again > 0 {
		c.queue.AddAfter(id, again)
	}
}

// recorder records warnings.
type recorder struct{ events.EventRecorderLogger }

func (r recorder) warn(ctx context.Context, about runtime.Object, reason, message string) {
	r.WithLogger(klog.FromContext(ctx)).Eventf(about, nil, v1.EventTypeWarning, reason, "Scheduling", "%s", message)
}

// namespaces bounds how many gangs of one namespace are synced at the same time, so that requests that hang there leave
// workers for other namespaces.
type namespaces struct {
	mu    sync.Mutex
	lines map[string]*line
}

// line is how many gangs of a namespace are being synced, and which wait, in order.
type line struct {
	inside  int
	waiting []gang.ID
}

// enter reports whether the gang may be synced now. If not, leave returns it when it may.
func (n *namespaces) enter(id gang.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lines == nil {
		n.lines = map[string]*line{}
	}
	l := n.lines[id.Namespace]
	if l == nil {
		l = &line{}
		n.lines[id.Namespace] = l
	}
	if l.inside < workersOfNamespace {
		l.inside++
		return true
	}
	if !slices.Contains(l.waiting, id) {
		l.waiting = append(l.waiting, id)
	}
	return false
}

// leave ends the sync of a gang and returns the next of its namespace, if one waits.
func (n *namespaces) leave(id gang.ID) (next gang.ID, waits bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.lines[id.Namespace]
	l.inside--
	if waits = len(l.waiting) > 0; waits {
		next, l.waiting = l.waiting[0], l.waiting[1:]
	}
	if l.inside+len(l.waiting) == 0 {
		delete(n.lines, id.Namespace)
	}
	return next, waits
}
