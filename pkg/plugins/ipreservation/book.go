package ipreservation

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/apis/config"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/clusterwide"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
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

// book is what all profiles share: who has which address.
type book struct {
	handle fwk.Handle
	sources
	ledger address.Ledger
	wide   *clusterwide.Book
	status *informers.StatusLoop
	known  knownPools
	// nominated are pods that ask for an address and that others were evicted for, by UID.
	nominated sync.Map
	wakes
	noted
}

// sources are what the book reads.
type sources struct {
	pools        cache.SharedIndexInformer
	reservations cache.SharedIndexInformer
	// client writes both kinds.
	client *restclient.RESTClient
	pods   corelisters.PodLister
	sets   appslisters.StatefulSetLister
	synced []cache.InformerSynced
}

// knownPools are the pools as they were read last.
type knownPools struct {
	// load reads what the informers have before the first cycle: handlers are told of it later.
	load sync.Once
	// reading keeps older pools from replacing newer ones.
	reading sync.Mutex
	states  atomic.Pointer[[]poolState]
}

// wakes have the loops look: freed the one that tries pods again, due the one that releases addresses, wrote the one
// that looks after what was written and has not been seen.
type wakes struct{ freed, due, wrote chan struct{} }

// noted is what cycles and handlers leave for the loops.
type noted struct {
	mu sync.Mutex
	// profiles are the args of the profiles that have the plugin.
	profiles map[string]*config.IPReservationArgs
	calls    calls
	unseen   map[string]written
	// neverRan are pods that were deleted before they had a node, by UID, while there is a reservation in their name.
	neverRan map[string]address.Identity
}

// poolState is a pool as it was read.
type poolState struct {
	*networkv1alpha1.IPPool
	problems field.ErrorList
	overlaps []string
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
	wide, err := clusterwide.Of(factory)
	if err != nil {
		return nil, err
	}
	b := &book{handle: handle, wide: wide, status: informers.NewStatusLoop(),
		sources: sources{pools: pools, reservations: reservations, client: client,
			pods: factory.Core().V1().Pods().Lister(), sets: factory.Apps().V1().StatefulSets().Lister()},
		wakes: wakes{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)},
		noted: noted{profiles: map[string]*config.IPReservationArgs{}, unseen: map[string]written{},
			neverRan: map[string]address.Identity{}}}
	if err := b.watch(factory); err != nil {
		return nil, err
	}
	published.Publish(ctx, b)
	go b.tryPods(ctx)
	go b.releaseAddresses(ctx)
	go b.lookAfterWritten(ctx)
	go b.status.Run(ctx, b.synced, func() bool { return len(b.poolStates()) > 0 }, b.writeStatuses)
	return b, nil
}

// begin runs at the start of each cycle.
func (b *book) begin() {
	b.status.Schedules()
	b.known.load.Do(func() {
		b.readPools()
		for _, obj := range b.reservations.GetStore().List() {
			b.observe(obj.(*networkv1alpha1.IPReservation))
		}
	})
}

// indifferentTo reports whether the pod has nothing to do with addresses, as far as that costs nothing to find out.
func (b *book) indifferentTo(pod *v1.Pod) bool {
	_, asks := pod.Annotations[wellknown.IPPoolKey]
	return !asks && b.ledger.Empty()
}

// concerned reports whether the pod gets an address.
func (b *book) concerned(ask *address.Ask) bool {
	return ask.Pool != "" || b.ledger.Concerns(ask.Identities)
}

// readPools gives the ledger the pools of the moment.
func (b *book) readPools() {
	b.known.reading.Lock()
	defer b.known.reading.Unlock()
	var pools []*address.Pool
	var states []poolState
	for _, obj := range b.pools.GetStore().List() {
		p := obj.(*networkv1alpha1.IPPool)
		pool, problems := podview.AddressPool(p)
		pools, states = append(pools, pool), append(states, poolState{IPPool: p, problems: problems})
	}
	common := address.Overlaps(pools)
	for i := range states {
		states[i].overlaps = common[states[i].Name]
	}
	b.ledger.SetPools(pools)
	b.known.states.Store(&states)
	b.status.Poke()
}

func (b *book) poolStates() []poolState {
	if states := b.known.states.Load(); states != nil {
		return *states
	}
	return nil
}

// poolNamed returns nil if there is none.
func (b *book) poolNamed(name string) *networkv1alpha1.IPPool {
	obj, exists, err := b.pools.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	return obj.(*networkv1alpha1.IPPool)
}

// observe tells the ledger of a reservation, and reports whether that changes who may have which address.
func (b *book) observe(r *networkv1alpha1.IPReservation) bool {
	h, err := holdingOf(r)
	if err != nil {
		klog.Background().Error(err, "An IPReservation cannot be read, and keeps no address")
		return false
	}
	if !b.ledger.Observe(h) {
		return false
	}
	b.status.Poke()
	return true
}

// forget tells the ledger that a reservation is gone, and has pods tried that may have its address now, or another one.
func (b *book) forget(a netip.Addr, object string, who address.Identity) {
	if b.ledger.Forget(a, object) {
		b.status.Poke()
		b.wake(calls{hopeful: true, of: map[address.Identity]bool{who: true}})
	}
}

// serve notes a profile that has the plugin.
func (b *book) serve(profile string, args *config.IPReservationArgs) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.profiles[profile] = args
}

// argsOf returns the args of the profile that the pod names, nil if that does not have the plugin.
func (b *book) argsOf(pod *v1.Pod) *config.IPReservationArgs {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.profiles[pod.Spec.SchedulerName]
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
