package informers

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

// ledger and reader stand for what plugins share. Both refer back to their factory, as real ones do.
type (
	ledger struct {
		factory informers.SharedInformerFactory
		pods    corelisters.PodLister
	}
	reader struct{ args string }
)

func newFactory() informers.SharedInformerFactory {
	return informers.NewSharedInformerFactory(fake.NewClientset(), 0)
}

func newLedger(factory informers.SharedInformerFactory) (*ledger, error) {
	return &ledger{factory: factory, pods: factory.Core().V1().Pods().Lister()}, nil
}

// get fails the test where there is an error.
func get[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return value
	}
}

func TestAFactoryCarriesOneValueOfEachTypeAndKey(t *testing.T) {
	t.Parallel()
	ledgerOf := func(factory informers.SharedInformerFactory) *ledger {
		return get[*ledger](t)(Shared(factory, func() (*ledger, error) { return newLedger(factory) }))
	}
	readerOf := func(factory informers.SharedInformerFactory, args string) *reader {
		return get[*reader](t)(SharedBy(factory, args, func() (*reader, error) { return &reader{args}, nil }))
	}
	one, other := newFactory(), newFactory()
	if first, again := ledgerOf(one), ledgerOf(one); first != again {
		t.Error("a factory has two values of one type")
	}
	if ledgerOf(one) == ledgerOf(other) {
		t.Error("two factories have one value")
	}
	if first, again := readerOf(one, "a"), readerOf(one, "a"); first != again {
		t.Error("a factory has two values of one key")
	}
	if a, b := readerOf(one, "a"), readerOf(one, "b"); a == b || a.args != "a" || b.args != "b" {
		t.Errorf("two keys have the values %v and %v", a, b)
	}
	if got := ledgerOf(other).factory; got != other {
		t.Error("the value belongs to another factory")
	}
	// The key's type tells values apart, too: equal keys of two packages are not the same key.
	type ownKey string
	own := get[*reader](t)(SharedBy(one, ownKey("a"), func() (*reader, error) { return &reader{"own"}, nil }))
	if own.args != "own" {
		t.Errorf("a key of another type found the value %v", own)
	}
	// So does a type of the same name in another scope.
	type ledger struct{}
	local := get[*ledger](t)(Shared(one, func() (*ledger, error) { return &ledger{}, nil }))
	if local == nil {
		t.Error("a type of the same name found no value")
	}
}

func TestCallsAtTheSameTimeMakeOneValue(t *testing.T) {
	t.Parallel()
	factory := newFactory()
	var built atomic.Int64
	var wg sync.WaitGroup
	var found [64]*reader
	for i := range found {
		wg.Go(func() {
			key := strconv.Itoa(i % 2)
			found[i], _ = SharedBy(factory, key, func() (*reader, error) {
				built.Add(1)
				return &reader{key}, nil
			})
		})
	}
	wg.Wait()
	if n := built.Load(); n != 2 {
		t.Errorf("two keys were built %d times", n)
	}
	for i, r := range found {
		if r != found[i%2] || r.args != strconv.Itoa(i%2) {
			t.Errorf("call %d got %v, want %v", i, r, found[i%2])
		}
	}
}

func TestAValueMayBeBuiltOutOfOthers(t *testing.T) {
	t.Parallel()
	factory := newFactory()
	ledgerOf := func() (*ledger, error) {
		return Shared(factory, func() (*ledger, error) { return newLedger(factory) })
	}
	type view struct{ ledger *ledger }
	viewOf := func(key string) *view {
		return get[*view](t)(SharedBy(factory, key, func() (*view, error) {
			l, err := ledgerOf()
			return &view{l}, err
		}))
	}
	if a, b := viewOf("a"), viewOf("b"); a == b || a.ledger != b.ledger {
		t.Error("two views do not share their ledger")
	}
}

func TestAnErrorIsRememberedByItsFactoryAlone(t *testing.T) {
	t.Parallel()
	failure := errors.New("no such file")
	calls := 0
	build := func() (*reader, error) {
		if calls++; calls == 1 {
			return nil, failure
		}
		return &reader{}, nil
	}
	factory := newFactory()
	for range 2 {
		if r, err := Shared(factory, build); r != nil || !errors.Is(err, failure) {
			t.Errorf("got %v and the error %v, want the error of the first call", r, err)
		}
	}
	if r, err := Shared(newFactory(), build); r == nil || err != nil {
		t.Errorf("another factory got %v and the error %v, want a value", r, err)
	}
	if calls != 2 {
		t.Errorf("built %d times, want once for each factory", calls)
	}
}

func TestAFactoryThatCarriesValuesStartsSyncsAndEndsAsAnyOther(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	// A factory hands its transform to every informer.
	factory := informers.NewSharedInformerFactoryWithOptions(client, time.Minute,
		informers.WithTransform(func(obj any) (any, error) { return obj, nil }))
	l := get[*ledger](t)(Shared(factory, func() (*ledger, error) { return newLedger(factory) }))
	get[*reader](t)(SharedBy(factory, "a", func() (*reader, error) { return &reader{}, nil }))

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	factory.StartWithContext(ctx)
	synced := factory.WaitForCacheSyncWithContext(ctx)
	if err := synced.AsError(); err != nil {
		t.Error(err)
	}
	if n := len(synced.Synced); n != 2 {
		t.Errorf("%d informers are in sync, want those of the pods and of the values", n)
	}
	if _, err := l.pods.Pods("default").Get("a"); err != nil {
		t.Errorf("the value's lister: %v", err)
	}
	for _, action := range client.Actions() {
		if got := action.GetResource().Resource; got != "pods" {
			t.Errorf("the server was asked for %q", got)
		}
	}
	cancel()
	factory.Shutdown() // waits for all that the factory runs
}

func TestACarrierThatWaitsForNothingIsInSync(t *testing.T) {
	t.Parallel()
	factory := newFactory()
	get[*reader](t)(SharedBy(factory, "a", func() (*reader, error) { return &reader{}, nil }))
	informer := factory.InformerFor(&carried{},
		func(clientset.Interface, time.Duration) cache.SharedIndexInformer {
			t.Error("the factory has no informer for the value")
			return nil
		})
	informer.RunWithContext(t.Context())
	if !informer.HasSynced() || !cache.IsDone(informer.HasSyncedChecker()) {
		t.Error("the carrier is not in sync")
	}
}

func TestAFactoryIsCollectedWithItsValues(t *testing.T) {
	t.Parallel()
	tests := map[string]func(context.Context, informers.SharedInformerFactory){
		"of a factory that never started": func(context.Context, informers.SharedInformerFactory) {},
		"of a factory that ran": func(ctx context.Context, factory informers.SharedInformerFactory) {
			ctx, cancel := context.WithCancel(ctx)
			factory.StartWithContext(ctx)
			factory.WaitForCacheSyncWithContext(ctx)
			cancel()
			factory.Shutdown()
		},
	}
	for name, use := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gone := make(chan string, 2)
			factory := newFactory()
			share(t, factory, gone)
			use(t.Context(), factory)
			for range 3 {
				runtime.GC()
			}
			select {
			case name := <-gone:
				t.Fatalf("the %s is gone before its factory", name)
			default:
			}
			runtime.KeepAlive(factory)

			await.Until(t, "2 values to go with their factory", func() bool {
				runtime.GC()
				return len(gone) == 2
			})
		})
	}
}

// share makes two values of a factory; one of them refers to the factory, and tells when they are collected.
func share(t *testing.T, factory informers.SharedInformerFactory, gone chan<- string) {
	t.Helper()
	tell := func(name string) { gone <- name }
	runtime.AddCleanup(get[*ledger](t)(Shared(factory, func() (*ledger, error) { return newLedger(factory) })), tell,
		"ledger")
	runtime.AddCleanup(get[*reader](t)(SharedBy(factory, "a", func() (*reader, error) { return &reader{"a"}, nil })), tell,
		"reader")
}
