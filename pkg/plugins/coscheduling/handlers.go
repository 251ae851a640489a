package coscheduling

import "k8s.io/client-go/tools/cache"

// handlers are informer handlers for objects of one type, tombstones included.
func handlers[T any](add func(T), update func(old, obj T), remove func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if t, ok := obj.(T); ok {
				add(t)
			}
		},
		UpdateFunc: func(old, obj any) {
			o, ok1 := old.(T)
			t, ok2 := obj.(T)
			if ok1 && ok2 {
				update(o, t)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if t, ok := obj.(T); ok {
				remove(t)
			}
		},
	}
}
