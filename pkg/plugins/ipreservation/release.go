package ipreservation

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/podview"
)

// release deletes reservations as their release policies say, and reports whether all is done.
func (ad *addresses) release(ctx context.Context) bool {
	client, done := ad.handle.ClientSet(), true
	knownSet := func(namespace, name string) error {
		_, err := ad.sets.StatefulSets(namespace).Get(name)
		return err
	}
	knownPod := func(namespace, name string) (*v1.Pod, error) { return ad.pods.Pods(namespace).Get(name) }
	// The API server is asked last: the informer of reservations may be ahead of that of pods, and have an address that
	// another scheduler has given to a pod that this one does not know yet.
	servedSet := func(namespace, name string) error {
		_, err := client.AppsV1().StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
	servedPod := func(namespace, name string) (*v1.Pod, error) {
		return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	for _, obj := range ad.reservations.GetStore().List() {
		r := obj.(*berthv1alpha1.IPReservation)
		if stays, _ := needed(r, knownSet, knownPod); stays {
			continue
		}
		stays, err := needed(r, servedSet, servedPod)
		if err == nil && !stays {
			// The version is that for which the policy allows the release. A pod that is promised the address is tried again.
			err = ad.delete(ctx, r)
		}
		switch {
		case stays || apierrors.IsConflict(err):
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

// needed reports whether the reservation is to stay, by the StatefulSet and the pod that are found.
func needed(r *berthv1alpha1.IPReservation, set func(namespace, name string) error,
	pod func(namespace, name string) (*v1.Pod, error)) (bool, error) {
	// Without a UID it is kept for a pod that does not exist yet.
	if r.Spec.PodUID == "" || r.Spec.ReleasePolicy == berthv1alpha1.Retain || r.Spec.ReleasePolicy == "" {
		return true, nil
	}
	who := &r.Spec.Pod
	if r.Spec.ReleasePolicy == berthv1alpha1.OnStatefulSetDeletion && who.StatefulSet != "" {
		if err := set(who.Namespace, who.StatefulSet); err == nil {
			return true, nil
		} else if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("reading StatefulSet %s/%s: %w", who.Namespace, who.StatefulSet, err)
		}
	}
	found, err := pod(who.Namespace, who.Name)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading pod %s/%s: %w", who.Namespace, who.Name, err)
	}
	return !podview.Finished(found), nil
}
