package informers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Handle adds a handler to an informer, and makes the factory wait for it: WaitForCacheSync of the factory returns when
// the handler, too, was told of all objects that there were at the start. An informer is in sync as soon as its own
// store is, and its handlers hear of the objects later, each at its own speed. A scheduler waits for its own handlers
// before the first cycle and knows nothing of those of plugins; without this a plugin that is behind decides on a part
// of the cluster.
//
// An object that has taken the name of another reaches the handler as the deletion of that one and an addition.
//
// Call it before the factory starts, that is, while plugins are made. The handler must not wait for the factory.
func Handle(factory informers.SharedInformerFactory, informer cache.SharedInformer,
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	all, err := SharedBy(factory, informer, func() (*handlers, error) {
		h := &handlers{}
		var err error
		if h.ResourceEventHandlerRegistration, err = informer.AddEventHandler(byUID{h}); err != nil {
			return nil, err //nolint:wrapcheck // the caller says what it watches
		}
		Await(factory, h.HasSyncedChecker())
		return h, nil
	})
	if err != nil {
		return nil, err
	}
	all.add(handler)
	return all, nil
}

// handlers are those of one informer, which are told of each object one after the other: a handler that an informer
// tells alone costs two goroutines that wake up for each event, which is more than most handlers do.
type handlers struct {
	cache.ResourceEventHandlerRegistration
	mu sync.Mutex
	// of is replaced as a whole: it is read at each event.
	of atomic.Pointer[[]cache.ResourceEventHandler]
}

func (h *handlers) add(handler cache.ResourceEventHandler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := append(slices.Clip(h.all()), handler)
	h.of.Store(&all)
}

// all returns the handlers, in the order in which they were added.
func (h *handlers) all() []cache.ResourceEventHandler {
	if of := h.of.Load(); of != nil {
		return *of
	}
	return nil
}

// OnAdd is part of cache.ResourceEventHandler.
func (h *handlers) OnAdd(obj any, initially bool) {
	for _, handler := range h.all() {
		handler.OnAdd(obj, initially)
	}
}

// OnUpdate is part of cache.ResourceEventHandler.
func (h *handlers) OnUpdate(before, after any) {
	for _, handler := range h.all() {
		handler.OnUpdate(before, after)
	}
}

// OnDelete is part of cache.ResourceEventHandler.
func (h *handlers) OnDelete(obj any) {
	for _, handler := range h.all() {
		handler.OnDelete(obj)
	}
}

// byUID tells objects apart by their UID. Informers go by the name: what came and went while a watch was interrupted
// they see as one update, from an object to another that has its name, and a handler would never hear that the first is
// gone.
type byUID struct{ cache.ResourceEventHandler }

// OnUpdate implements cache.ResourceEventHandler.
func (h byUID) OnUpdate(before, after any) {
	if old, ok := before.(metav1.Object); ok {
		if now, ok := after.(metav1.Object); ok && old.GetUID() != now.GetUID() {
			h.OnDelete(before)
			h.OnAdd(after, false)
			return
		}
	}
	h.ResourceEventHandler.OnUpdate(before, after)
}

// Await makes WaitForCacheSync of the factory wait for something else, too. Call it before the factory starts.
func Await(factory informers.SharedInformerFactory, done cache.DoneChecker) {
	all := awaitedBy(factory)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.of = append(all.of, done)
}

// Run has the factory start an informer that is none of its own. Call it before the factory starts.
func Run(factory informers.SharedInformerFactory, informer cache.SharedIndexInformer) {
	all := awaitedBy(factory)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.run = append(all.run, informer)
}

func awaitedBy(factory informers.SharedInformerFactory) *awaited {
	return factory.InformerFor(&slot[struct{}, awaited]{},
		func(clientset.Interface, time.Duration) cache.SharedIndexInformer {
			return &awaited{
				SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &slot[struct{}, awaited]{}, 0,
					cache.Indexers{}),
				told: make(chan struct{}),
			}
		}).(*awaited)
}

// awaited is an informer that watches nothing, runs others, and is in sync once all that it waits for is done.
type awaited struct {
	cache.SharedIndexInformer

	mu  sync.Mutex
	of  []cache.DoneChecker
	run []cache.SharedIndexInformer
	// told is closed when all is done that there is to wait for at the start: handlers have been told of everything.
	told chan struct{}
}

// Run runs the others and waits.
func (a *awaited) Run(stop <-chan struct{}) { a.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext runs the others and waits.
func (a *awaited) RunWithContext(ctx context.Context) {
	a.mu.Lock()
	of, run := slices.Clone(a.of), slices.Clone(a.run)
	a.mu.Unlock()
	var running sync.WaitGroup
	defer running.Wait()
	for _, informer := range run {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	if cache.WaitFor(ctx, "", of...) {
		close(a.told)
	}
}

// HasSynced reports whether the handlers have been told of everything.
func (a *awaited) HasSynced() bool {
	select {
	case <-a.told:
		return true
	default:
		return false
	}
}

// HasSyncedChecker returns a checker that is done when the handlers have been told of everything.
func (a *awaited) HasSyncedChecker() cache.DoneChecker { return a }

// Name says what is waited for.
func (*awaited) Name() string { return "handlers of plugins" }

// Done is closed when the handlers have been told of everything.
func (a *awaited) Done() <-chan struct{} { return a.told }
