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
	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// The two kinds that the plugin reads.
var (
	poolKind = informers.CustomKind{
		Resource: berthv1alpha1.SchemeGroupVersion.WithResource("ippools"),
		Object:   &berthv1alpha1.IPPool{},
		List:     &berthv1alpha1.IPPoolList{},
		Reader:   Name,
		Unread:   "pods that ask for an address of a pool stay pending",
	}
	reservationKind = informers.CustomKind{
		Resource: berthv1alpha1.SchemeGroupVersion.WithResource("ipreservations"),
		Object:   &berthv1alpha1.IPReservation{},
		List:     &berthv1alpha1.IPReservationList{},
		Reader:   Name,
		Unread:   "no reservation of an address holds",
	}
)

// wakeEvery is the least time between two rounds of waking pods: where many addresses come free, one is enough.
const wakeEvery = time.Second

// addresses is what all profiles share: which pod has which address.
type addresses struct {
	handle       fwk.Handle
	ledger       *address.Ledger
	kept         *process.Holds
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

func newAddresses(ctx context.Context, handle fwk.Handle) (*addresses, error) {
	factory := handle.SharedInformerFactory()
	pools, _, err := informers.Custom(factory, handle.KubeConfig(), poolKind)
	if err != nil {
		return nil, err
	}
	reservations, client, err := informers.Custom(factory, handle.KubeConfig(), reservationKind)
	if err != nil {
		return nil, err
	}
	kept, err := process.HoldsOf(factory)
	if err != nil {
		return nil, err
	}
	ad := &addresses{handle: handle, ledger: address.NewLedger(), kept: kept, pools: pools, reservations: reservations,
		client: client, pods: factory.Core().V1().Pods().Lister(), sets: factory.Apps().V1().StatefulSets().Lister(),
		upkeep: informers.NewStatusLoop(informers.ElectionOf(factory))}
	synced, err := ad.watch(ctx, factory)
	if err != nil {
		return nil, err
	}
	published.Publish(ctx, ad)
	go ad.upkeep.Run(ctx, synced, ad.inUse, func(ctx context.Context) bool {
		released := ad.release(ctx)
		return ad.writeStatuses(ctx) && released
	})
	return ad, nil
}

// inUse reports whether there is a pool or a reservation.
func (ad *addresses) inUse() bool {
	return len(ad.pools.GetStore().ListKeys())+len(ad.reservations.GetStore().ListKeys()) > 0
}

// watch registers the handlers of informers. The first cycle waits until these have seen all objects.
func (ad *addresses) watch(ctx context.Context,
	factory kubeinformers.SharedInformerFactory) ([]cache.InformerSynced, error) {
	var synced []cache.InformerSynced
	for _, w := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"IPPools", ad.pools, informers.Events(func(before, after *berthv1alpha1.IPPool) {
			// This scheduler writes the status itself, which changes no generation.
			if before == nil || before.Generation != after.Generation {
				ad.readPools(ctx)
			}
		}, func(*berthv1alpha1.IPPool) { ad.readPools(ctx) })},
		{"IPReservations", ad.reservations, informers.Events(
			func(_, r *berthv1alpha1.IPReservation) { ad.reserved(ctx, r) },
			func(r *berthv1alpha1.IPReservation) { ad.released(ctx, r) })},
		{"pods", factory.Core().V1().Pods().Informer(), informers.Events(nil, func(pod *v1.Pod) {
			if ad.ledger.HasReservation(nameOf(pod)) {
				ad.upkeep.Poke()
			}
		})},
		{"StatefulSets", factory.Apps().V1().StatefulSets().Informer(),
			informers.Events(nil, func(*appsv1.StatefulSet) { ad.upkeep.Poke() })},
	} {
		registration, err := informers.Handle(factory, w.informer, w.handler)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", w.what, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

// readPools updates the pools of the ledger.
func (ad *addresses) readPools(ctx context.Context) {
	var pools []*address.Pool
	for _, obj := range ad.pools.GetStore().List() {
		pool, _ := podview.AddressPool(obj.(*berthv1alpha1.IPPool))
		pools = append(pools, pool)
	}
	ad.ledger.SetPools(pools)
	ad.upkeep.Poke()
	ad.wake(ctx)
}

// reserved wakes the pod for which a reservation has come or changed.
func (ad *addresses) reserved(ctx context.Context, r *berthv1alpha1.IPReservation) {
	if ad.observe(ctx, r) {
		ad.wakePod(ctx, holderOf(r), "")
	}
	ad.upkeep.Poke()
}

// released wakes the pods that may have the address now, and the pod that may have another one.
func (ad *addresses) released(ctx context.Context, r *berthv1alpha1.IPReservation) {
	a, err := address.Parse(r.Spec.Address)
	if err != nil || !ad.ledger.Forget(a, string(r.UID)) {
		return
	}
	ad.upkeep.Poke()
	ad.wake(ctx)
	ad.wakePod(ctx, holderOf(r), "")
}

// observe records a reservation in the ledger, and reports whether that changes anything.
func (ad *addresses) observe(ctx context.Context, r *berthv1alpha1.IPReservation) bool {
	a, err := address.Parse(r.Spec.Address)
	if err != nil {
		klog.FromContext(ctx).Error(err, "An IPReservation cannot be read, and keeps no address", "reservation", r.Name)
		return false
	}
	return ad.ledger.Observe(address.Reservation{Address: a, Object: string(r.UID),
		Domain: podview.AddressDomain(r.Spec.Domain), Pod: holderOf(r)})
}

func holderOf(r *berthv1alpha1.IPReservation) address.PodName {
	return address.PodName{Namespace: r.Spec.Pod.Namespace, Name: r.Spec.Pod.Name}
}

func nameOf(pod *v1.Pod) address.PodName {
	return address.PodName{Namespace: pod.Namespace, Name: pod.Name}
}

// ask reads the pod's request, nil for a pod that gets no address.
func (ad *addresses) ask(pod *v1.Pod) (*address.Ask, *wellknown.BadValue) {
	pool, bad := podview.PodIPPool(pod)
	if bad != nil || pool == "" && !ad.ledger.HasReservation(nameOf(pod)) {
		return nil, bad
	}
	return &address.Ask{UID: string(pod.UID), Pod: nameOf(pod), Pool: pool}, nil
}

// wakePod has the pending pod of the name tried again, unless it has the UID except.
func (ad *addresses) wakePod(ctx context.Context, name address.PodName, except string) {
	pod, err := ad.pods.Pods(name.Namespace).Get(name.Name)
	if err == nil && pod.Spec.NodeName == "" && string(pod.UID) != except {
		ad.handle.Activate(klog.FromContext(ctx), map[string]*v1.Pod{string(pod.UID): pod})
	}
}

// wake has pending pods tried soon if they ask for an address of a pool that may have one.
func (ad *addresses) wake(ctx context.Context) {
	if ad.waking.Swap(true) {
		return
	}
	time.AfterFunc(wakeEvery, func() {
		ad.waking.Store(false)
		if ctx.Err() != nil {
			return
		}
		usages := ad.usageByPool()
		process.Wake(klog.FromContext(ctx), ad.handle, "Addresses changed", func(pod *v1.Pod) bool {
			name, asks := pod.Annotations[wellknown.IPPoolKey]
			u, known := usages[name]
			return asks && (!known || u.Free > 0)
		})
	})
}
