// Package informers holds the state that informers feed and that the profiles of one scheduler share.
//
// A plugin is made once for each profile, but some of its state must exist once for each scheduler: a ledger of
// devices, a background reader. The profiles of a scheduler have only the informer factory in common, and a process may
// run many schedulers, as a replay does. So the factory owns the state, in an informer that watches nothing.
//
// Plugins and the packages of gangs call it. It never decides what the state means.
package informers

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Shared returns the value of type T that the factory carries. The first call makes it by build; calls at the same time
// wait for it. Use a type T of your own package that is not exported, so that no other package shares the value.
//
// An error of build is remembered and returned by all later calls: build may have added handlers or indexers to the
// factory's informers before it failed, and adding them again would count everything twice. A scheduler does not start
// with a plugin that failed, so such a factory has no further use.
//
// Build may use the factory and may ask for other shared values, but not for the same one. What it starts in the
// background ends with a context, as the plugin's does: all profiles of a scheduler are made with the same one. The
// value lives exactly as long as the factory, unless build makes something else refer to it.
func Shared[T any](factory informers.SharedInformerFactory, build func() (T, error)) (T, error) {
	return SharedBy(factory, struct{}{}, build)
}

// SharedBy is Shared with one value for each key: profiles with equal settings share a value, and others do not.
func SharedBy[K comparable, T any](factory informers.SharedInformerFactory, key K, build func() (T, error)) (T, error) {
	// The factory is locked while it makes an informer, and build may use the factory: it runs only now.
	c, slot := carrierOf(factory), slot[K, T]{key}
	c.mu.Lock()
	value, ok := c.values[slot].(func() (T, error))
	if !ok {
		value = sync.OnceValues(build)
		c.values[slot] = value
	}
	c.mu.Unlock()
	return value()
}

// slot is where a carrier keeps a value. Each pair of K and T is a type of its own.
type slot[K comparable, T any] struct{ key K }

// Await makes WaitForCacheSync of the factory wait for done as well. Call it before the factory starts.
func Await(factory informers.SharedInformerFactory, done cache.DoneChecker) {
	c := carrierOf(factory)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited = append(c.awaited, done)
}

// Run makes the factory start an informer that it did not make. Call it before the factory starts.
func Run(factory informers.SharedInformerFactory, informer cache.SharedIndexInformer) {
	c := carrierOf(factory)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run = append(c.run, informer)
}

// carrierOf returns the carrier of the factory. A map from factories to carriers, even with weak keys, would never free
// them: nearly all state refers to listers or informers of its factory.
func carrierOf(factory informers.SharedInformerFactory) *carrier {
	return factory.InformerFor(&carried{}, func(clientset.Interface, time.Duration) cache.SharedIndexInformer {
		return &carrier{
			SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &carried{}, 0, cache.Indexers{}),
			values:              map[any]any{}, synced: make(chan struct{}),
		}
	}).(*carrier)
}

// carried is the object type under which a factory keeps its carrier. There are no such objects.
type carried struct{ runtime.Object }

// carrier is an informer that watches nothing. It has what profiles share, runs other informers, and is in sync once
// all that it waits for is done. The informer that it embeds never runs; it provides the methods that a factory does
// not use.
type carrier struct {
	cache.SharedIndexInformer

	mu sync.Mutex
	// values holds functions by slot, which make the value at their first call and return it at all calls.
	values  map[any]any
	awaited []cache.DoneChecker
	run     []cache.SharedIndexInformer
	// synced is closed when the handlers have been told of everything, and all else that is awaited is done.
	synced chan struct{}
}

// Run runs the others and waits.
func (c *carrier) Run(stop <-chan struct{}) { c.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext runs the others and waits.
func (c *carrier) RunWithContext(ctx context.Context) {
	c.mu.Lock()
	awaited, run := slices.Clone(c.awaited), slices.Clone(c.run)
	c.mu.Unlock()
	var running sync.WaitGroup
	defer running.Wait()
	for _, informer := range run {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	if cache.WaitFor(ctx, "", awaited...) {
		close(c.synced)
	}
}

// HasSynced reports whether the handlers have been told of everything.
func (c *carrier) HasSynced() bool { return cache.IsDone(c) }

// HasSyncedChecker returns a checker that is done when the handlers have been told of everything.
func (c *carrier) HasSyncedChecker() cache.DoneChecker { return c }

// Name says what is waited for.
func (*carrier) Name() string { return "handlers of plugins" }

// Done is closed when the handlers have been told of everything.
func (c *carrier) Done() <-chan struct{} { return c.synced }
