package ipreservation

import (
	"context"
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// settle is how long after a change pods are tried once more: a cycle that ran meanwhile has ended by then, and its pod
// could not be woken while it was in it. It is also the least time between two looks at all reservations.
const settle = time.Second

// watch registers what informers tell.
func (b *book) watch(factory kubeinformers.SharedInformerFactory) error {
	for _, w := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"IPPools", b.pools, informers.Events[*networkv1alpha1.IPPool]{
			Set: b.poolSeen, Gone: func(*networkv1alpha1.IPPool) { b.poolsChanged() }}},
		{"IPReservations", b.reservations, informers.Events[*networkv1alpha1.IPReservation]{
			Set: b.reservationSeen, Gone: b.reservationGone}},
		{"pods", factory.Core().V1().Pods().Informer(), cache.ResourceEventHandlerFuncs{AddFunc: b.podSeen,
			UpdateFunc: func(_, obj any) { b.podSeen(obj) }, DeleteFunc: b.podGone}},
		{"StatefulSets", factory.Apps().V1().StatefulSets().Informer(),
			cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { signal(b.due) }}},
	} {
		told, err := informers.Handle(factory, w.informer, w.handler)
		if err != nil {
			return fmt.Errorf("watching %s: %w", w.what, err)
		}
		b.synced = append(b.synced, told.HasSynced)
	}
	return nil
}

// poolSeen tells a new spec from a new status, which this scheduler writes itself.
func (b *book) poolSeen(before, after *networkv1alpha1.IPPool) {
	if before == nil || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		b.poolsChanged()
	}
}

// poolsChanged tries all pods that ask: those that still get no address are told another reason.
func (b *book) poolsChanged() {
	b.readPools()
	b.wake(calls{all: true})
}

func (b *book) reservationSeen(before, r *networkv1alpha1.IPReservation) {
	b.seen(r)
	if b.observe(r) {
		of := map[address.Identity]bool{identityOf(&r.Spec.Pod): true}
		if before != nil {
			of[identityOf(&before.Spec.Pod)] = true
		}
		b.wake(calls{of: of})
	}
	signal(b.due)
}

func (b *book) reservationGone(r *networkv1alpha1.IPReservation) {
	b.seen(r)
	if h, err := holdingOf(r); err == nil {
		b.forget(h.Address, h.Object, h.Identity)
	}
}

// podSeen notes a pod that others were evicted for, and has the reservations looked at for a pod that has several.
func (b *book) podSeen(obj any) {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return
	}
	if _, asks := pod.Annotations[wellknown.IPPoolKey]; asks && pod.Spec.NodeName == "" &&
		pod.Status.NominatedNodeName != "" &&
		b.argsOf(pod) != nil {
		b.nominated.Store(pod.UID, pod)
		return
	}
	b.notNominated(pod)
	if pod.Spec.NodeName != "" && !b.ledger.Empty() && b.ledger.Count(podview.PodIdentities(pod)) > 1 {
		signal(b.due) // one of them may be surplus
	}
}

// notNominated ends what is kept for the pod. If it is bound it has a reservation instead.
func (b *book) notNominated(pod *v1.Pod) {
	if _, was := b.nominated.LoadAndDelete(pod.UID); was && pod.Spec.NodeName == "" {
		b.wake(calls{hopeful: true})
	}
}

// podGone has the reservations looked at if one of them may be released now, and notes with which one the pod ran.
func (b *book) podGone(obj any) {
	gone, missed := obj.(cache.DeletedFinalStateUnknown)
	if missed {
		obj = gone.Obj
	}
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return
	}
	b.notNominated(pod)
	identities := podview.PodIdentities(pod)
	if b.ledger.Empty() || !b.ledger.Concerns(identities) {
		return
	}
	switch {
	case pod.Spec.NodeName != "":
		b.ledger.Ran(identities, string(pod.UID))
	case !missed: // else it may have got a node that was not seen
		b.noteNeverRan(pod)
	}
	signal(b.due)
}

// calls are the pending pods that are to be tried.
type calls struct {
	// all are those that get an address, hopeful those of them for which one is free somewhere.
	all, hopeful bool
	// of are those of an identity, whether or not they get an address.
	of map[address.Identity]bool
}

// callsFor has one pod tried, whether or not it gets an address.
func callsFor(pod *v1.Pod) calls {
	of := map[address.Identity]bool{}
	for _, who := range podview.PodIdentities(pod) {
		of[who] = true
	}
	return calls{of: of}
}

// wake has pods tried again.
func (b *book) wake(c calls) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls.all, b.calls.hopeful = b.calls.all || c.all, b.calls.hopeful || c.hopeful
	if b.calls.of == nil {
		b.calls.of = map[address.Identity]bool{}
	}
	maps.Copy(b.calls.of, c.of)
	signal(b.freed)
}

// tryPods wakes pods until ctx ends.
func (b *book) tryPods(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.freed:
		}
		// What comes during the pause has a pause of its own.
		b.mu.Lock()
		c := b.calls
		b.calls = calls{}
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
		if !cache.WaitForCacheSync(ctx.Done(), b.synced...) {
			return
		}
		b.activate(ctx, c)
	}
}

// activate has pending pods tried.
func (b *book) activate(ctx context.Context, c calls) {
	awake := map[string]*v1.Pod{}
	pods, _ := b.pods.List(labels.Everything()) // a lister of a cache has no errors
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || len(c.of) == 0 && b.indifferentTo(pod) {
			continue
		}
		if ask, bad := askOf(pod); bad == nil && b.called(c, ask) {
			awake[string(pod.UID)] = pod
		}
	}
	if len(awake) > 0 {
		klog.FromContext(ctx).V(4).Info("Addresses changed, trying pods again", "pods", len(awake))
		b.handle.Activate(klog.FromContext(ctx), awake)
	}
}

func (b *book) called(c calls, ask *address.Ask) bool {
	for _, who := range ask.Identities {
		if c.of[who] {
			return true
		}
	}
	if !c.all && !c.hopeful || !b.concerned(ask) {
		return false
	}
	if c.all {
		return true
	}
	plan, reason := b.ledger.Plan(ask)
	return reason == "" && !plan.Hopeless()
}
