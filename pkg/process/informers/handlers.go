package informers

import (
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
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
