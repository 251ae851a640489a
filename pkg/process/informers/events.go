package informers

import "k8s.io/client-go/tools/cache"

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
