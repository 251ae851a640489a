package ipreservation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/apis/config"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/binding"
	"berth.dev/berth/pkg/podview"
)

var (
	// errTaken means that another scheduler or a user was faster.
	errTaken = errors.New("the address is reserved for another pod; trying again with another address")
	// errGone means that the reservation was deleted since the pod was promised its address.
	errGone = errors.New("the reservation was deleted; trying again")
	// errPodGone means that the pod was deleted since it was promised an address. Its binding goes on until something
	// fails.
	errPodGone = errors.New("the pod was deleted meanwhile")
)

// PreBindPreFlight skips PreBind for pods without an address.
func (p *Plugin) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *v1.Pod,
	_ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if _, ok := p.book.ledger.Promised(string(pod.UID)); !ok {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, nil
}

// PreBind writes the reservation, which only one scheduler can do for an address, and then tells the pod.
func (p *Plugin) PreBind(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	promise, ok := p.book.ledger.Promised(string(pod.UID))
	if !ok {
		return nil
	}
	if err := p.give(ctx, pod, &promise); err != nil {
		return fwk.AsStatus(err)
	}
	p.book.ledger.Drop(string(pod.UID))
	if next, err := p.book.pods.Pods(pod.Namespace).Get(pod.Name); err == nil && next.UID != pod.UID {
		p.book.wake(callsFor(next)) // it waited for the promise
	}
	klog.FromContext(ctx).V(3).Info("Reserved an address", "pod", klog.KObj(pod), "address", promise.Address, "domain",
		promise.Domain)
	return nil
}

// give keeps a promise. The plugins before this one may have waited for minutes, and a pod that was deleted meanwhile
// gets nothing: an address that is reserved for it would stay with the pods of its name.
func (p *Plugin) give(ctx context.Context, pod *v1.Pod, promise *address.Promise) error {
	if seen, err := p.book.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || seen.UID != pod.UID {
		if err := p.stillThere(ctx, pod); err != nil {
			return fmt.Errorf("reserving address %s for pod %s/%s: %w", promise.Address, pod.Namespace, pod.Name, err)
		}
	}
	var err error
	if promise.Object == "" {
		err = p.book.create(ctx, pod, promise)
	} else {
		err = p.book.renew(ctx, pod, promise)
	}
	if err != nil {
		return err
	}
	err = p.tell(ctx, pod, promise.Address.String())
	if err != nil && errors.Is(p.stillThere(ctx, pod), errPodGone) {
		p.book.noteNeverRan(pod) // its end may have been seen before the reservation was made
	}
	return err
}

// stillThere asks the API server for the pod, and fails with errPodGone if another one, or none, has its name.
func (p *Plugin) stillThere(ctx context.Context, pod *v1.Pod) error {
	newest, err := p.handle.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && newest.UID != pod.UID:
		return errPodGone
	case err != nil:
		return fmt.Errorf("reading the pod: %w", err)
	}
	return nil
}

// create reserves a new address.
func (b *book) create(ctx context.Context, pod *v1.Pod, promise *address.Promise) error {
	made := &networkv1alpha1.IPReservation{}
	name := podview.ReservationName(promise.Address)
	err := b.client.Post().Resource(reservationKind.Resource.Resource).Body(b.reservationFor(pod, promise)).Do(ctx).Into(
		made)
	if apierrors.IsAlreadyExists(err) {
		// Our own if the API server's answer to an earlier attempt was lost.
		if err := b.client.Get().Resource(reservationKind.Resource.Resource).Name(name).Do(ctx).Into(made); err != nil {
			return fmt.Errorf("reading IPReservation %s: %w", name, err)
		}
		b.noteWritten(made)
		if made.Spec.PodUID == string(pod.UID) {
			return nil
		}
		return fmt.Errorf("creating IPReservation %s for pod %s/%s: %w", name, pod.Namespace, pod.Name, errTaken)
	}
	if err != nil {
		return fmt.Errorf("creating IPReservation %s for pod %s/%s: %w", name, pod.Namespace, pod.Name, err)
	}
	b.noteWritten(made)
	return nil
}

// renew says in the reservation that the pod has it. That also keeps a scheduler that led before from deleting it.
func (b *book) renew(ctx context.Context, pod *v1.Pod, promise *address.Promise) error {
	name := podview.ReservationName(promise.Address)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": promise.Object},
		"spec": map[string]any{"podUID": pod.UID}})
	if err != nil {
		return fmt.Errorf("encoding patch of IPReservation %s: %w", name, err)
	}
	renewed := &networkv1alpha1.IPReservation{}
	err = b.client.Patch(types.MergePatchType).Resource(reservationKind.Resource.Resource).Name(name).Body(patch).Do(
		ctx).Into(renewed)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		b.forget(promise.Address, promise.Object, podview.PodIdentities(pod)[0])
		return fmt.Errorf("updating IPReservation %s for pod %s/%s: %w", name, pod.Namespace, pod.Name, errGone)
	}
	if err != nil {
		return fmt.Errorf("updating IPReservation %s for pod %s/%s: %w", name, pod.Namespace, pod.Name, err)
	}
	b.noteWritten(renewed)
	return nil
}

// reservationFor is the reservation of an address of a pool.
func (b *book) reservationFor(pod *v1.Pod, promise *address.Promise) *networkv1alpha1.IPReservation {
	r := &networkv1alpha1.IPReservation{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkv1alpha1.SchemeGroupVersion.String(), Kind: "IPReservation"},
		ObjectMeta: metav1.ObjectMeta{Name: podview.ReservationName(promise.Address)},
		Spec: networkv1alpha1.IPReservationSpec{
			Address: promise.Address.String(), Pool: promise.Pool, PodUID: string(pod.UID),
			ReleasePolicy: networkv1alpha1.OnStatefulSetDeletion,
		},
	}
	if promise.Domain.Key != "" {
		r.Spec.Domain = &networkv1alpha1.Domain{Key: promise.Domain.Key, Value: promise.Domain.Value}
	}
	who := podview.PodIdentities(pod)[0]
	r.Spec.Pod = networkv1alpha1.PodIdentity{Namespace: who.Namespace, StatefulSet: who.StatefulSet, Name: who.Pod}
	if who.StatefulSet != "" {
		r.Spec.Pod.Ordinal = &who.Ordinal
	}
	if pool := b.poolNamed(promise.Pool); pool != nil {
		r.Spec.ReleaseAfter = pool.Spec.ReleaseAfter
		if pool.Spec.ReleasePolicy != "" {
			r.Spec.ReleasePolicy = pool.Spec.ReleasePolicy
		}
	}
	return r
}

// tell writes the address into the pod's annotation, through the status: the right to patch pods would be one to change
// their images, too. A pod that is bound keeps the address that it was told then.
func (p *Plugin) tell(ctx context.Context, pod *v1.Pod, text string) error {
	key, text := *p.args.AddressAnnotation, annotated(p.args, text)
	seen, err := p.book.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || seen.UID != pod.UID {
		seen = nil
	}
	word := func(newest *v1.Pod) ([]byte, error) {
		if newest.Annotations[key] == text {
			return nil, nil
		}
		return json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": pod.UID, "resourceVersion": newest.ResourceVersion, "annotations": map[string]string{key: text},
		}})
	}
	err = binding.Tell(ctx, p.handle.ClientSet().CoreV1(), pod, seen,
		binding.Message{Kind: types.MergePatchType, Word: word, Subresources: []string{"status"}})
	if err != nil {
		return fmt.Errorf("telling pod %s/%s its address: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// annotated is the address as the CNI plugin reads it.
func annotated(args *config.IPReservationArgs, text string) string {
	if *args.AddressFormat == config.AddressJSONList {
		return `["` + text + `"]`
	}
	return text
}
