package informers

import (
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Handle adds a handler to an informer, and makes WaitForCacheSync of the factory wait until the handler has been told
// of the objects that exist at the start. An informer is in sync as soon as its own store is, and its handlers run
// later. The scheduler waits only for its own handlers before the first cycle, so that a plugin would otherwise decide
// on a part of the cluster.
//
// A new object with the name of a deleted one reaches the handler as a deletion and an addition.
//
// Call it while plugins are made, before the factory starts. The handler must not wait for the factory.
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

// handlers calls the handlers of one informer one after the other: each registration with an informer costs two
// goroutines that wake up for each event, which is more than most handlers do.
type handlers struct {
	cache.ResourceEventHandlerRegistration
	mu sync.Mutex
	// of is replaced as a whole, so that events read it without the lock.
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

// byUID tells objects apart by their UID. Informers go by the name: if an object was replaced while a watch was
// interrupted, they report an update, and a handler would never learn that the first object is gone.
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

// Events returns a handler for objects of type T; it ignores all others. It calls set for each object that was added or
// changed, with its state before, which is the zero value for one that was added, and gone with the last known state of
// one that was deleted. Either may be nil.
func Events[T any](set func(before, now T), gone func(T)) cache.ResourceEventHandler {
	update := func(oldObj, newObj any) {
		before, _ := oldObj.(T)
		if now, ok := newObj.(T); ok && set != nil {
			set(before, now)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { update(nil, obj) },
		UpdateFunc: update,
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if last, ok := obj.(T); ok && gone != nil {
				gone(last)
			}
		},
	}
}
