package informers

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Handle adds a handler to an informer, and makes the factory wait for it: WaitForCacheSync of the factory returns when the
// handler, too, was told of all objects that there were at the start. An informer is in sync as soon as its own store is, and
// its handlers hear of the objects later, each at its own speed. A scheduler waits for its own handlers before the first
// cycle and knows nothing of those of plugins; without this a plugin that is behind decides on a part of the cluster.
//
// Call it before the factory starts, that is, while plugins are made. The handler must not wait for the factory.
func Handle(factory informers.SharedInformerFactory, informer cache.SharedInformer, handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it watches
	}
	all := factory.InformerFor(&slot[struct{}, awaited]{}, func(clientset.Interface, time.Duration) cache.SharedIndexInformer {
		return &awaited{
			SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &slot[struct{}, awaited]{}, 0, cache.Indexers{}),
			told:                make(chan struct{}),
		}
	}).(*awaited)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.handlers = append(all.handlers, registration)
	return registration, nil
}

// awaited is an informer that watches nothing and is in sync once handlers of other informers are.
type awaited struct {
	cache.SharedIndexInformer

	mu       sync.Mutex
	handlers []cache.ResourceEventHandlerRegistration
	// told is closed when the handlers that there are at the start have been told of everything.
	told chan struct{}
}

// Run waits for the handlers.
func (a *awaited) Run(stop <-chan struct{}) { a.await(stop) }

// RunWithContext waits for the handlers.
func (a *awaited) RunWithContext(ctx context.Context) { a.await(ctx.Done()) }

func (a *awaited) await(stop <-chan struct{}) {
	a.mu.Lock()
	handlers := slices.Clone(a.handlers)
	a.mu.Unlock()
	for _, h := range handlers {
		select {
		case <-h.HasSyncedChecker().Done():
		case <-stop:
			return
		}
	}
	close(a.told)
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
