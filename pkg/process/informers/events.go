package informers

import "k8s.io/client-go/tools/cache"

// Events is a handler of what an informer tells of objects of one type, and passes over all else. Set is told of an
// object that has come or changed, and of its state before; that is the zero value of one that has come. Gone is told
// the last state that was known. Either may be nil.
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
