package ipreservation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/apis/config"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// errTold means that another scheduler, for example one that led until just now, gives the pod an address as well.
var errTold = errors.New("the pod was told another address meanwhile")

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
	r, err := p.book.write(ctx, pod, &promise)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("reserving address %s for pod %s/%s: %w", promise.Address, pod.Namespace, pod.Name,
			err))
	}
	if err := p.tell(ctx, pod, promise.Address.String()); err != nil {
		// The pod may be gone, or bound with another address. A reservation that was made for it alone would keep the address
		// from others.
		if promise.Object == "" {
			err = errors.Join(err, p.book.delete(ctx, r))
		}
		return fwk.AsStatus(err)
	}
	p.book.observe(ctx, r)
	p.drop(ctx, pod)
	klog.FromContext(ctx).V(3).Info("Reserved an address", "pod", klog.KObj(pod), "address", promise.Address, "domain",
		promise.Domain)
	return nil
}

// write makes the reservation, or says in the one that there is that the pod has it. That also keeps a scheduler that
// led before from deleting it. The API server refuses both if the address is another pod's by now.
func (b *book) write(ctx context.Context, pod *v1.Pod,
	promise *address.Promise) (*networkv1alpha1.IPReservation, error) {
	written := &networkv1alpha1.IPReservation{}
	resource := reservationKind.Resource.Resource
	if promise.Object == "" {
		//nolint:wrapcheck // the caller says what was to be reserved
		return written, b.client.Post().Resource(resource).Body(b.reservationFor(pod, promise)).Do(ctx).Into(written)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": promise.Object},
		"spec": map[string]any{"podUID": pod.UID}})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	//nolint:wrapcheck // the caller says what was to be reserved
	return written, b.client.Patch(types.MergePatchType).Resource(resource).Name(
		podview.ReservationName(promise.Address)).Body(patch).Do(ctx).Into(written)
}

// delete deletes that version of the reservation alone: a scheduler that leads by now may have given the address to a
// pod.
func (b *book) delete(ctx context.Context, r *networkv1alpha1.IPReservation) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion}}
	err := b.client.Delete().Resource(reservationKind.Resource.Resource).Name(r.Name).Body(&options).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("deleting IPReservation %s: %w", r.Name, err)
	}
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
			Pod: networkv1alpha1.PodIdentity{Namespace: pod.Namespace, Name: pod.Name,
				StatefulSet: podview.StatefulSetOf(pod)},
		},
	}
	if promise.Domain.Key != "" {
		r.Spec.Domain = &networkv1alpha1.Domain{Key: promise.Domain.Key, Value: promise.Domain.Value}
	}
	if obj, exists, err := b.pools.GetStore().GetByKey(promise.Pool); err == nil && exists {
		r.Spec.ReleasePolicy = cmp.Or(obj.(*networkv1alpha1.IPPool).Spec.ReleasePolicy, r.Spec.ReleasePolicy)
	}
	return r
}

// tell writes the address into the pod's annotation, through the status: the right to patch pods would be one to change
// their images, too. A pod keeps the address that it was bound with, or that another scheduler has told it since this
// cycle began.
func (p *Plugin) tell(ctx context.Context, pod *v1.Pod, text string) error {
	key, text := *p.args.AddressAnnotation, annotated(p.args, text)
	seen, err := p.book.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || seen.UID != pod.UID {
		seen = nil
	}
	word := func(newest *v1.Pod) ([]byte, error) {
		switch newest.Annotations[key] {
		case text:
			return nil, nil
		case pod.Annotations[key]:
			return json.Marshal(map[string]any{"metadata": map[string]any{
				"uid": pod.UID, "resourceVersion": newest.ResourceVersion, "annotations": map[string]string{key: text},
			}})
		}
		return nil, errTold
	}
	err = process.PatchPodStatus(ctx, p.handle.ClientSet().CoreV1(), pod, seen, types.MergePatchType, word)
	if err != nil {
		return fmt.Errorf("telling pod %s/%s its address %s: %w", pod.Namespace, pod.Name, text, err)
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
