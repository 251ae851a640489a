package ipreservation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/kubeview"
)

// The two kinds that the plugin reads.
var (
	poolKind = informers.CustomKind{
		Resource:    networkv1alpha1.SchemeGroupVersion.WithResource("ippools"),
		AddToScheme: networkv1alpha1.AddToScheme,
		Object:      &networkv1alpha1.IPPool{},
		List:        &networkv1alpha1.IPPoolList{},
		Reader:      Name,
		Unread:      "pods that ask for an address of a pool stay pending",
	}
	reservationKind = informers.CustomKind{
		Resource:    networkv1alpha1.SchemeGroupVersion.WithResource("ipreservations"),
		AddToScheme: networkv1alpha1.AddToScheme,
		Object:      &networkv1alpha1.IPReservation{},
		List:        &networkv1alpha1.IPReservationList{},
		Reader:      Name,
		Unread:      "no reservation of an address holds",
	}
)

// settle is how long after a change pods are tried once more: a cycle that ran meanwhile has ended by then, and its pod
// could not be woken while it was in it.
const settle = time.Second

// book is what all profiles share: who has which address.
type book struct {
	handle       fwk.Handle
	pools        cache.SharedIndexInformer
	reservations cache.SharedIndexInformer
	client       *restclient.RESTClient
	pods         corelisters.PodLister
	sets         appslisters.StatefulSetLister
	synced       []cache.InformerSynced
	ledger       address.Ledger

	// load reads what the informers have before the first cycle: handlers are told of it later.
	load sync.Once
	// reading keeps older pools from replacing newer ones.
	reading sync.Mutex
	// leading is set by the first scheduling cycle, which only the leader has, or by the leader election's own gauge.
	leading atomic.Bool
	// freed wakes the loop that tries pods again, due the one that releases addresses.
	freed, due chan struct{}
}

func newBook(ctx context.Context, handle fwk.Handle) (*book, error) {
	factory := handle.SharedInformerFactory()
	pools, _, err := informers.Custom(factory, handle.KubeConfig(), poolKind)
	if err != nil {
		return nil, err
	}
	reservations, client, err := informers.Custom(factory, handle.KubeConfig(), reservationKind)
	if err != nil {
		return nil, err
	}
	pods, sets := factory.Core().V1().Pods(), factory.Apps().V1().StatefulSets()
	b := &book{handle: handle, pools: pools, reservations: reservations, client: client, pods: pods.Lister(), sets: sets.Lister(),
		freed: make(chan struct{}, 1), due: make(chan struct{}, 1)}
	gone := cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { b.poke() }}
	for _, w := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"IPPools", pools, cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { b.readPools() }, UpdateFunc: func(any, any) { b.readPools() }, DeleteFunc: func(any) { b.readPools() }}},
		{"IPReservations", reservations, cache.ResourceEventHandlerFuncs{
			AddFunc: b.reservationSeen, UpdateFunc: func(_, obj any) { b.reservationSeen(obj) }, DeleteFunc: b.reservationGone}},
		{"pods", pods.Informer(), gone},
		{"StatefulSets", sets.Informer(), gone},
	} {
		if _, err := w.informer.AddEventHandler(w.handler); err != nil {
			return nil, fmt.Errorf("watching %s: %w", w.what, err)
		}
		b.synced = append(b.synced, w.informer.HasSynced)
	}
	published.publish(ctx, b)
	go b.tryPods(ctx)
	go b.releaseAddresses(ctx)
	return b, nil
}

// begin runs at the start of each cycle.
func (b *book) begin() {
	if !b.leading.Load() {
		b.leading.Store(true)
	}
	b.load.Do(func() {
		b.readPools()
		for _, obj := range b.reservations.GetStore().List() {
			b.observe(obj.(*networkv1alpha1.IPReservation))
		}
	})
}

// indifferentTo reports whether the pod has nothing to do with addresses, as far as that costs nothing to find out.
func (b *book) indifferentTo(pod *v1.Pod) bool {
	_, asks := pod.Annotations[kubeview.IPPoolKey]
	return !asks && b.ledger.Empty()
}

// concerned reports whether the pod gets an address.
func (b *book) concerned(ask *address.Ask) bool {
	return ask.Pool != "" || b.ledger.Concerns(ask.Identities)
}

// readPools gives the ledger the pools of the moment.
func (b *book) readPools() {
	b.reading.Lock()
	defer b.reading.Unlock()
	var pools []*address.Pool
	for _, obj := range b.pools.GetStore().List() {
		pool, _ := kubeview.AddressPool(obj.(*networkv1alpha1.IPPool))
		pools = append(pools, pool)
	}
	b.ledger.SetPools(pools)
	b.wake()
}

// poolNamed returns nil if there is none.
func (b *book) poolNamed(name string) *networkv1alpha1.IPPool {
	obj, exists, err := b.pools.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	return obj.(*networkv1alpha1.IPPool)
}

func (b *book) reservationSeen(obj any) {
	if r, ok := obj.(*networkv1alpha1.IPReservation); ok {
		b.observe(r)
		b.wake()
		b.poke()
	}
}

func (b *book) observe(r *networkv1alpha1.IPReservation) {
	h, err := holdingOf(r)
	if err != nil {
		klog.Background().Error(err, "An IPReservation cannot be read, and keeps no address")
		return
	}
	b.ledger.Observe(h)
}

func (b *book) reservationGone(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	r, ok := obj.(*networkv1alpha1.IPReservation)
	if !ok {
		return
	}
	if h, err := holdingOf(r); err == nil && b.ledger.Forget(h.Address, h.Object) {
		b.wake()
	}
}

// wake has the pods tried again that wait for addresses.
func (b *book) wake() { signal(b.freed) }

// poke has the reservations looked at that may be released.
func (b *book) poke() { signal(b.due) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tryPods wakes pods until ctx ends.
func (b *book) tryPods(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.freed:
			again = time.After(settle)
		case <-again:
			again = nil
		}
		if !cache.WaitForCacheSync(ctx.Done(), b.synced...) {
			return
		}
		b.activate(ctx)
	}
}

// activate has the pods tried that wait and that get addresses.
func (b *book) activate(ctx context.Context) {
	awake := map[string]*v1.Pod{}
	pods, _ := b.pods.List(labels.Everything()) // a lister of a cache has no errors
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || b.indifferentTo(pod) {
			continue
		}
		if ask, bad := askOf(pod); bad == nil && b.concerned(ask) {
			awake[string(pod.UID)] = pod
		}
	}
	if len(awake) > 0 {
		klog.FromContext(ctx).V(4).Info("Addresses changed, trying pods again", "pods", len(awake))
		b.handle.Activate(klog.FromContext(ctx), awake)
	}
}
