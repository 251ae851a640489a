package ipreservation

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/podview"
)

// releaseRetry is the pause after a request that failed, and before asking again whether this scheduler leads.
const releaseRetry = 5 * time.Second

// releaseAddresses deletes reservations as their release policies say, until ctx ends. Only the scheduler that leads
// does.
func (b *book) releaseAddresses(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), b.synced...) {
		return
	}
	synced := time.Now()
	var timer <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.due:
		case <-timer:
		}
		timer = nil
		if len(b.reservations.GetStore().ListKeys()) == 0 {
			continue
		}
		wait := releaseRetry
		if b.status.Leads(synced) {
			wait = b.releaseRound(ctx)
		}
		if wait > 0 {
			timer = time.After(wait)
		}
		// Where many pods end, one look at all reservations is enough for many of them.
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
	}
}

// releaseRound looks at all reservations and returns when to look again, 0 for when something changes.
func (b *book) releaseRound(ctx context.Context) time.Duration {
	var next time.Duration
	for _, obj := range b.reservations.GetStore().List() {
		r := obj.(*networkv1alpha1.IPReservation)
		wait, err := b.releaseOne(ctx, r)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Releasing an address failed, trying again", "reservation", r.Name)
			wait = releaseRetry
		}
		if wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	b.forgetNeverRan()
	return next
}

// releaseOne deletes the reservation if it is due, and returns how long it is until then.
func (b *book) releaseOne(ctx context.Context, r *networkv1alpha1.IPReservation) (time.Duration, error) {
	surplus := b.surplus(r) || b.neverUsed(r)
	if !surplus && !b.unused(r) {
		if r.Status.UnusedSince != nil {
			return 0, b.writeUnused(ctx, r, nil)
		}
		return 0, nil
	}
	if !surplus && r.Spec.ReleaseAfter != nil && r.Spec.ReleaseAfter.Duration > 0 {
		if r.Status.UnusedSince == nil {
			now := metav1.Now()
			return r.Spec.ReleaseAfter.Duration, b.writeUnused(ctx, r, &now)
		}
		if left := time.Until(r.Status.UnusedSince.Add(r.Spec.ReleaseAfter.Duration)); left > 0 {
			return left, nil
		}
	}
	a, err := address.Parse(r.Spec.Address)
	if err != nil {
		return 0, nil //nolint:nilerr // what cannot be read keeps no address
	}
	if !b.ledger.BeginRelease(a, string(r.UID)) {
		return releaseRetry, nil // it is promised, and nothing tells when the promise ends
	}
	if !surplus {
		needed, err := b.stillNeeded(ctx, r)
		if needed || err != nil {
			b.endRelease(a, r)
			return releaseRetry, err
		}
	}
	// The version is that for which the policy allows the release.
	switch err = b.deleteAsItIs(ctx, r); {
	case err == nil || apierrors.IsNotFound(err):
		klog.FromContext(ctx).V(2).Info("Released an address", "address", r.Spec.Address, "policy", r.Spec.ReleasePolicy,
			"surplus", surplus)
		b.forget(a, string(r.UID), identityOf(&r.Spec.Pod))
		return 0, nil
	case apierrors.IsConflict(err):
		b.endRelease(a, r)
		return releaseRetry, nil
	}
	b.endRelease(a, r)
	return 0, fmt.Errorf("deleting IPReservation %s: %w", r.Name, err)
}

// deleteAsItIs deletes that version of the reservation alone: a scheduler that leads by now may have given the address
// to a pod.
func (b *book) deleteAsItIs(ctx context.Context, r *networkv1alpha1.IPReservation) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion}}
	//nolint:wrapcheck // the callers tell the kinds of errors apart
	return b.client.Delete().Resource(reservationKind.Resource.Resource).Name(r.Name).Body(&options).Do(ctx).Error()
}

// endRelease has the pod tried that was refused the address while it was being released.
func (b *book) endRelease(a netip.Addr, r *networkv1alpha1.IPReservation) {
	b.ledger.EndRelease(a)
	b.wake(calls{of: map[address.Identity]bool{identityOf(&r.Spec.Pod): true}})
}

// unused reports whether the release policy allows the release: no pod that it waits for exists any more.
func (b *book) unused(r *networkv1alpha1.IPReservation) bool {
	if r.Spec.PodUID == "" {
		return false // it is kept for a pod that is to come
	}
	who := &r.Spec.Pod
	switch r.Spec.ReleasePolicy {
	case networkv1alpha1.OnPodDeletion:
		return !b.podExists(who)
	case networkv1alpha1.OnStatefulSetDeletion:
		if who.StatefulSet != "" {
			if _, err := b.sets.StatefulSets(who.Namespace).Get(who.StatefulSet); err == nil {
				return false
			}
		}
		return !b.podExists(who)
	}
	return false
}

// stillNeeded asks the API server whether there is anybody that an unused reservation waits for. The informers do not
// say: that of the reservations may be ahead of that of the pods, and know of an address that another scheduler has
// given to a pod that this one does not know.
func (b *book) stillNeeded(ctx context.Context, r *networkv1alpha1.IPReservation) (bool, error) {
	who := &r.Spec.Pod
	client := b.handle.ClientSet()
	if r.Spec.ReleasePolicy == networkv1alpha1.OnStatefulSetDeletion && who.StatefulSet != "" {
		switch _, err := client.AppsV1().StatefulSets(who.Namespace).Get(ctx, who.StatefulSet, metav1.GetOptions{}); {
		case err == nil:
			return true, nil
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("reading StatefulSet %s/%s: %w", who.Namespace, who.StatefulSet, err)
		}
	}
	pod, err := client.CoreV1().Pods(who.Namespace).Get(ctx, podName(who), metav1.GetOptions{})
	switch {
	case err == nil:
		return uses(pod, who), nil
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("reading pod %s/%s: %w", who.Namespace, podName(who), err)
	}
	return false, nil
}

// surplus reports whether the reservation was made for a pod that runs with another address: two schedulers have
// reserved an address each while one was losing the lead.
func (b *book) surplus(r *networkv1alpha1.IPReservation) bool {
	if r.Spec.Pool == "" || r.Spec.PodUID == "" {
		return false // it is made by hand
	}
	pod, err := b.pods.Pods(r.Spec.Pod.Namespace).Get(podName(&r.Spec.Pod))
	if err != nil || string(pod.UID) != r.Spec.PodUID || pod.Spec.NodeName == "" {
		return false
	}
	args := b.argsOf(pod)
	if args == nil {
		return false
	}
	has := pod.Annotations[*args.AddressAnnotation]
	if has == "" || has == annotated(args, r.Spec.Address) {
		return false
	}
	// Anybody may write an annotation, so the address that it names must be reserved for the pod as well.
	return slices.ContainsFunc(b.ledger.HeldBy(identityOf(&r.Spec.Pod)), func(h address.Holding) bool {
		return h.Pod == r.Spec.PodUID && annotated(args, h.Address.String()) == has
	})
}

// noteNeverRan notes that the pod was deleted before it had a node. What was reserved for it alone is given back.
func (b *book) noteNeverRan(pod *v1.Pod) {
	b.mu.Lock()
	b.neverRan[string(pod.UID)] = podview.PodIdentities(pod)[0]
	b.mu.Unlock()
	signal(b.due)
}

// neverUsed reports whether the reservation was made for a pod that was deleted before it could run, and was never
// another pod's: the generation counts the pods that were given the address, and the edits of users.
func (b *book) neverUsed(r *networkv1alpha1.IPReservation) bool {
	b.mu.Lock()
	_, gone := b.neverRan[r.Spec.PodUID]
	b.mu.Unlock()
	return gone && r.Spec.Pool != "" && r.Generation == 1
}

// forgetNeverRan forgets the pods that have no reservation in their name any more.
func (b *book) forgetNeverRan() {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.neverRan, func(pod string, who address.Identity) bool {
		return !slices.ContainsFunc(b.ledger.HeldBy(who), func(h address.Holding) bool { return h.Pod == pod })
	})
}

func podName(who *networkv1alpha1.PodIdentity) string {
	if who.StatefulSet != "" && who.Ordinal != nil {
		return fmt.Sprintf("%s-%d", who.StatefulSet, *who.Ordinal)
	}
	return who.Name
}

// podExists reports whether there is a pod that the reservation is for. The informer has none that have ended.
func (b *book) podExists(who *networkv1alpha1.PodIdentity) bool {
	pod, err := b.pods.Pods(who.Namespace).Get(podName(who))
	return err == nil && uses(pod, who)
}

// uses reports whether the reservation is for the pod, and the pod has not ended.
func uses(pod *v1.Pod, who *networkv1alpha1.PodIdentity) bool {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return false
	}
	for _, identity := range podview.PodIdentities(pod) {
		if identity == identityOf(who) {
			return true
		}
	}
	return false
}

// writeUnused writes since when the reservation is not used.
func (b *book) writeUnused(ctx context.Context, r *networkv1alpha1.IPReservation, since *metav1.Time) error {
	return informers.PatchStatus(ctx, b.client, reservationKind, r, map[string]any{"unusedSince": since})
}
