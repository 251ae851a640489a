package ipreservation

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// The two kinds that the plugin reads.
var (
	poolKind = informers.CustomKind{
		Resource: networkv1alpha1.SchemeGroupVersion.WithResource("ippools"),
		Object:   &networkv1alpha1.IPPool{},
		List:     &networkv1alpha1.IPPoolList{},
		Reader:   Name,
		Unread:   "pods that ask for an address of a pool stay pending",
	}
	reservationKind = informers.CustomKind{
		Resource: networkv1alpha1.SchemeGroupVersion.WithResource("ipreservations"),
		Object:   &networkv1alpha1.IPReservation{},
		List:     &networkv1alpha1.IPReservationList{},
		Reader:   Name,
		Unread:   "no reservation of an address holds",
	}
)

// wakeEvery is the least time between two rounds of waking pods: where many addresses come free, one is enough.
const wakeEvery = time.Second

// book is what all profiles share: who has which address.
type book struct {
	handle       fwk.Handle
	ledger       *address.Ledger
	wide         *process.Holds
	pools        cache.SharedIndexInformer
	reservations cache.SharedIndexInformer
	// client writes both kinds.
	client *restclient.RESTClient
	pods   corelisters.PodLister
	sets   appslisters.StatefulSetLister
	// upkeep has statuses written and addresses released by the scheduler that leads.
	upkeep *informers.StatusLoop
	// waking is set while a round of waking pods is due.
	waking atomic.Bool
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
	wide, err := process.HoldsOf(factory)
	if err != nil {
		return nil, err
	}
	b := &book{handle: handle, ledger: address.NewLedger(), wide: wide, pools: pools, reservations: reservations,
		client: client, pods: factory.Core().V1().Pods().Lister(), sets: factory.Apps().V1().StatefulSets().Lister(),
		upkeep: informers.NewStatusLoop(informers.ElectionOf(factory))}
	synced, err := b.watch(ctx, factory)
	if err != nil {
		return nil, err
	}
	published.Publish(ctx, b)
	go b.upkeep.Run(ctx, synced, b.inUse, func(ctx context.Context) bool {
		released := b.release(ctx)
		return b.writeStatuses(ctx) && released
	})
	return b, nil
}

// inUse reports whether there is a pool or a reservation.
func (b *book) inUse() bool {
	return len(b.pools.GetStore().ListKeys())+len(b.reservations.GetStore().ListKeys()) > 0
}

// watch registers what informers tell. The first cycle waits until they have told of all that there is.
func (b *book) watch(ctx context.Context, factory kubeinformers.SharedInformerFactory) ([]cache.InformerSynced, error) {
	var synced []cache.InformerSynced
	for _, w := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"IPPools", b.pools, informers.Events(func(before, after *networkv1alpha1.IPPool) {
			// This scheduler writes the status itself, which changes no generation.
			if before == nil || before.Generation != after.Generation {
				b.readPools(ctx)
			}
		}, func(*networkv1alpha1.IPPool) { b.readPools(ctx) })},
		{"IPReservations", b.reservations, informers.Events(
			func(_, r *networkv1alpha1.IPReservation) { b.reserved(ctx, r) },
			func(r *networkv1alpha1.IPReservation) { b.released(ctx, r) })},
		{"pods", factory.Core().V1().Pods().Informer(), informers.Events(nil, func(pod *v1.Pod) {
			if b.ledger.Concerns(nameOf(pod)) {
				b.upkeep.Poke()
			}
		})},
		{"StatefulSets", factory.Apps().V1().StatefulSets().Informer(),
			informers.Events(nil, func(*appsv1.StatefulSet) { b.upkeep.Poke() })},
	} {
		told, err := informers.Handle(factory, w.informer, w.handler)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", w.what, err)
		}
		synced = append(synced, told.HasSynced)
	}
	return synced, nil
}

// readPools gives the ledger the pools of the moment.
func (b *book) readPools(ctx context.Context) {
	var pools []*address.Pool
	for _, obj := range b.pools.GetStore().List() {
		pool, _ := podview.AddressPool(obj.(*networkv1alpha1.IPPool))
		pools = append(pools, pool)
	}
	b.ledger.SetPools(pools)
	b.upkeep.Poke()
	b.wake(ctx)
}

// reserved has the pod tried that a reservation has come or changed for.
func (b *book) reserved(ctx context.Context, r *networkv1alpha1.IPReservation) {
	if b.observe(ctx, r) {
		b.wakePod(ctx, holderOf(r), "")
	}
	b.upkeep.Poke()
}

// released has the pods tried that may have the address now, and the one that may have another one.
func (b *book) released(ctx context.Context, r *networkv1alpha1.IPReservation) {
	a, err := address.Parse(r.Spec.Address)
	if err != nil || !b.ledger.Forget(a, string(r.UID)) {
		return
	}
	b.upkeep.Poke()
	b.wake(ctx)
	b.wakePod(ctx, holderOf(r), "")
}

// observe tells the ledger of a reservation, and reports whether that is news.
func (b *book) observe(ctx context.Context, r *networkv1alpha1.IPReservation) bool {
	a, err := address.Parse(r.Spec.Address)
	if err != nil {
		klog.FromContext(ctx).Error(err, "An IPReservation cannot be read, and keeps no address", "reservation", r.Name)
		return false
	}
	return b.ledger.Observe(address.Holding{Address: a, Object: string(r.UID),
		Domain: podview.AddressDomain(r.Spec.Domain), Pod: holderOf(r)})
}

func holderOf(r *networkv1alpha1.IPReservation) address.PodName {
	return address.PodName{Namespace: r.Spec.Pod.Namespace, Name: r.Spec.Pod.Name}
}

func nameOf(pod *v1.Pod) address.PodName {
	return address.PodName{Namespace: pod.Namespace, Name: pod.Name}
}

// ask reads what the pod wants, nil for a pod that gets no address.
func (b *book) ask(pod *v1.Pod) (*address.Ask, *wellknown.BadValue) {
	pool, bad := podview.PodIPPool(pod)
	if bad != nil || pool == "" && !b.ledger.Concerns(nameOf(pod)) {
		return nil, bad
	}
	return &address.Ask{UID: string(pod.UID), Pod: nameOf(pod), Pool: pool}, nil
}

// wakePod has the pending pod of the name tried again, unless it is the one with the UID.
func (b *book) wakePod(ctx context.Context, name address.PodName, except string) {
	pod, err := b.pods.Pods(name.Namespace).Get(name.Name)
	if err == nil && pod.Spec.NodeName == "" && string(pod.UID) != except {
		b.handle.Activate(klog.FromContext(ctx), map[string]*v1.Pod{string(pod.UID): pod})
	}
}

// wake has the pending pods tried soon that ask for an address of a pool, unless the pool is known to have none.
func (b *book) wake(ctx context.Context) {
	if b.waking.Swap(true) {
		return
	}
	time.AfterFunc(wakeEvery, func() {
		b.waking.Store(false)
		if ctx.Err() != nil {
			return
		}
		usages := b.usageByPool()
		process.Wake(klog.FromContext(ctx), b.handle, "Addresses changed", func(pod *v1.Pod) bool {
			name, asks := pod.Annotations[wellknown.IPPoolKey]
			u, known := usages[name]
			return asks && (!known || u.Free > 0)
		})
	})
}
