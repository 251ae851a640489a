package ipreservation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/podview"
)

// release deletes reservations as their release policies say, and reports whether all is done.
func (ad *addresses) release(ctx context.Context) bool {
	done := true
	for _, obj := range ad.reservations.GetStore().List() {
		r := obj.(*networkv1alpha1.IPReservation)
		if ad.needed(r) {
			continue
		}
		needed, err := ad.stillNeeded(ctx, r)
		if err == nil && !needed {
			// The version is that for which the policy allows the release. A pod that is promised the address is tried again.
			err = ad.delete(ctx, r)
		}
		switch {
		case needed || apierrors.IsConflict(err):
			done = false // the informers are late
		case err != nil && !apierrors.IsNotFound(err):
			klog.FromContext(ctx).Error(err, "Releasing an address failed, trying again", "reservation", r.Name)
			done = false
		default:
			klog.FromContext(ctx).V(2).Info("Released an address", "address", r.Spec.Address)
		}
	}
	return done
}

// needed reports whether the reservation is to stay, as far as the informers know.
func (ad *addresses) needed(r *networkv1alpha1.IPReservation) bool {
	// Without a UID it is kept for a pod that does not exist yet.
	if r.Spec.PodUID == "" || r.Spec.ReleasePolicy == networkv1alpha1.Retain || r.Spec.ReleasePolicy == "" {
		return true
	}
	who := &r.Spec.Pod
	if waitsForSet(r) {
		if _, err := ad.sets.StatefulSets(who.Namespace).Get(who.StatefulSet); err == nil {
			return true
		}
	}
	_, err := ad.pods.Pods(who.Namespace).Get(who.Name) // the informer has no pods that have ended
	return err == nil
}

// stillNeeded asks the API server whether the reservation is to stay. The informer of reservations may be ahead of that
// of pods, and have an address that another scheduler has given to a pod that this one does not know yet.
func (ad *addresses) stillNeeded(ctx context.Context, r *networkv1alpha1.IPReservation) (bool, error) {
	who, client := &r.Spec.Pod, ad.handle.ClientSet()
	if waitsForSet(r) {
		_, err := client.AppsV1().StatefulSets(who.Namespace).Get(ctx, who.StatefulSet, metav1.GetOptions{})
		switch {
		case err == nil:
			return true, nil
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("reading StatefulSet %s/%s: %w", who.Namespace, who.StatefulSet, err)
		}
	}
	pod, err := client.CoreV1().Pods(who.Namespace).Get(ctx, who.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading pod %s/%s: %w", who.Namespace, who.Name, err)
	}
	return !podview.Finished(pod), nil
}

// waitsForSet reports whether the address is kept for as long as there is a StatefulSet.
func waitsForSet(r *networkv1alpha1.IPReservation) bool {
	return r.Spec.ReleasePolicy == networkv1alpha1.OnStatefulSetDeletion && r.Spec.Pod.StatefulSet != ""
}
