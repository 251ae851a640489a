package informers

import "k8s.io/client-go/tools/cache"

// Events is a handler of what an informer tells of objects of one type, and passes over all else. Either function may
// be nil.
type Events[T any] struct {
	// Set is told of an object that has come or changed, and of its state before; that is the zero value of one that has
	// come.
	Set func(before, now T)
	// Gone is told the last state that was known.
	Gone func(T)
}

// OnAdd is part of cache.ResourceEventHandler.
func (e Events[T]) OnAdd(obj any, _ bool) { e.OnUpdate(nil, obj) }

// OnUpdate is part of cache.ResourceEventHandler.
func (e Events[T]) OnUpdate(oldObj, newObj any) {
	before, _ := oldObj.(T)
	if now, ok := newObj.(T); ok && e.Set != nil {
		e.Set(before, now)
	}
}

// OnDelete is part of cache.ResourceEventHandler.
func (e Events[T]) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if gone, ok := obj.(T); ok && e.Gone != nil {
		e.Gone(gone)
	}
}
