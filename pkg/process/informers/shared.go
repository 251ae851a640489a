// Package informers holds the state that informers feed and that the profiles of one scheduler share.
//
// A plugin is made once for each profile, and some of what it knows must exist once for the whole scheduler: a ledger
// of promised devices, a background reader, a reporter of bad values. All profiles of a scheduler have one informer
// factory and nothing else in common, so the factory is what the state belongs to. A process may run many schedulers,
// one after the other or at once, as a replay does; each has a factory of its own.
//
// The factory itself carries the state, in an informer that watches nothing. A map from factory to state, even one with
// weak keys, would keep every factory that its own state refers to, and nearly all state refers to listers or informers
// of its factory. Carried by the factory, state and factory refer to each other only, and the garbage collector takes
// both together.
package informers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	informer := factory.InformerFor(&slot[K, T]{}, func(clientset.Interface, time.Duration) cache.SharedIndexInformer {
		return &carrier[K, T]{
			SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &slot[K, T]{}, 0, cache.Indexers{}),
			values:              map[K]func() (T, error){},
		}
	})
	// Nothing outside this package can name a slot, so that the informer for it is always a carrier. The factory is locked
	// while it makes an informer, and build may use the factory: it runs only now.
	return informer.(*carrier[K, T]).value(key, build)()
}

// slot is the object type under which a factory keeps a carrier. Each pair of K and T is a type of its own.
type slot[K comparable, T any] struct{}

// GetObjectKind returns no kind: there are no such objects.
func (*slot[K, T]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the slot itself, which has no content.
func (s *slot[K, T]) DeepCopyObject() runtime.Object { return s }

// carrier is an informer that watches nothing and is always in sync. The informer that it embeds never runs; it
// provides the methods that a factory does not use.
type carrier[K comparable, T any] struct {
	cache.SharedIndexInformer

	mu     sync.Mutex
	values map[K]func() (T, error)
}

// value returns the function that makes the value at its first call and returns it at all calls.
func (c *carrier[K, T]) value(key K, build func() (T, error)) func() (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.values[key]
	if !ok {
		value = sync.OnceValues(build)
		c.values[key] = value
	}
	return value
}

// Run returns at once: there is nothing to watch.
func (*carrier[K, T]) Run(<-chan struct{}) {}

// RunWithContext returns at once: there is nothing to watch.
func (*carrier[K, T]) RunWithContext(context.Context) {}

// HasSynced is always true.
func (*carrier[K, T]) HasSynced() bool { return true }

// HasSyncedChecker returns a checker that is done.
func (*carrier[K, T]) HasSyncedChecker() cache.DoneChecker { return synced{} }

// synced is the checker of what has nothing to wait for.
type synced struct{}

var done = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Name says what is waited for.
func (synced) Name() string { return "state shared by the profiles of a scheduler" }

// Done is closed.
func (synced) Done() <-chan struct{} { return done }
