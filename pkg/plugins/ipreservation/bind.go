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
	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// errOtherAddress means that another scheduler, such as one that has just lost its lease, gives the pod an address,
// too.
var errOtherAddress = errors.New("another scheduler has given the pod another address meanwhile")

// PreBindPreFlight skips PreBind for pods without an address.
func (p *Plugin) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *v1.Pod,
	_ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if _, ok := p.addresses.ledger.Promised(string(pod.UID)); !ok {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, nil
}

// PreBind writes the reservation, which only one scheduler can do for an address, and then the pod's annotation.
func (p *Plugin) PreBind(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	promise, ok := p.addresses.ledger.Promised(string(pod.UID))
	if !ok {
		return nil
	}
	r, err := p.addresses.write(ctx, pod, &promise)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("reserving address %s for pod %s/%s: %w", promise.Address, pod.Namespace, pod.Name,
			err))
	}
	if err := p.writeAnnotation(ctx, pod, promise.Address.String()); err != nil {
		// The pod may be gone, or bound with another address. A reservation that was made for it alone would keep the address
		// from others.
		if promise.Object == "" {
			err = errors.Join(err, p.addresses.delete(ctx, r))
		}
		return fwk.AsStatus(err)
	}
	p.addresses.observe(ctx, r)
	p.drop(ctx, pod)
	klog.FromContext(ctx).V(3).Info("Reserved an address", "pod", klog.KObj(pod), "address", promise.Address, "domain",
		promise.Domain)
	return nil
}

// write creates the reservation, or records the pod in an existing one, which also keeps a former leader from deleting
// it. The API server refuses both if another pod has the address by now.
func (ad *addresses) write(ctx context.Context, pod *v1.Pod,
	promise *address.Promise) (*berthv1alpha1.IPReservation, error) {
	written := &berthv1alpha1.IPReservation{}
	resource := reservationKind.Resource.Resource
	if promise.Object == "" {
		//nolint:wrapcheck // the caller says what was to be reserved
		return written, ad.client.Post().Resource(resource).Body(ad.reservationFor(pod, promise)).Do(ctx).Into(written)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": promise.Object},
		"spec": map[string]any{"podUID": pod.UID}})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	//nolint:wrapcheck // the caller says what was to be reserved
	return written, ad.client.Patch(types.MergePatchType).Resource(resource).Name(
		podview.ReservationName(promise.Address)).Body(patch).Do(ctx).Into(written)
}

// delete deletes only this version of the reservation: a newer leader may have given the address to a pod.
func (ad *addresses) delete(ctx context.Context, r *berthv1alpha1.IPReservation) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion}}
	err := ad.client.Delete().Resource(reservationKind.Resource.Resource).Name(r.Name).Body(&options).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("deleting IPReservation %s: %w", r.Name, err)
	}
	return nil
}

// reservationFor is the reservation of an address of a pool.
func (ad *addresses) reservationFor(pod *v1.Pod, promise *address.Promise) *berthv1alpha1.IPReservation {
	r := &berthv1alpha1.IPReservation{
		TypeMeta:   metav1.TypeMeta{APIVersion: berthv1alpha1.SchemeGroupVersion.String(), Kind: "IPReservation"},
		ObjectMeta: metav1.ObjectMeta{Name: podview.ReservationName(promise.Address)},
		Spec: berthv1alpha1.IPReservationSpec{
			Address: promise.Address.String(), Pool: promise.Pool, PodUID: string(pod.UID),
			ReleasePolicy: berthv1alpha1.OnStatefulSetDeletion,
			Pod: berthv1alpha1.PodIdentity{Namespace: pod.Namespace, Name: pod.Name,
				StatefulSet: podview.StatefulSetOf(pod)},
		},
	}
	if promise.Domain.Key != "" {
		r.Spec.Domain = &berthv1alpha1.Domain{Key: promise.Domain.Key, Value: promise.Domain.Value}
	}
	if obj, exists, err := ad.pools.GetStore().GetByKey(promise.Pool); err == nil && exists {
		r.Spec.ReleasePolicy = cmp.Or(obj.(*berthv1alpha1.IPPool).Spec.ReleasePolicy, r.Spec.ReleasePolicy)
	}
	return r
}

// writeAnnotation writes the address into the pod's annotation, through the status, because the right to patch pods
// would include their images. A pod keeps the address that it was bound with, or that another scheduler has written
// since this cycle began.
func (p *Plugin) writeAnnotation(ctx context.Context, pod *v1.Pod, text string) error {
	key, text := *p.args.AddressAnnotation, annotated(p.args, text)
	seen, err := p.addresses.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || seen.UID != pod.UID {
		seen = nil
	}
	makePatch := func(newest *v1.Pod) ([]byte, error) {
		switch newest.Annotations[key] {
		case text:
			return nil, nil
		case pod.Annotations[key]:
			return json.Marshal(map[string]any{"metadata": map[string]any{
				"uid": pod.UID, "resourceVersion": newest.ResourceVersion, "annotations": map[string]string{key: text},
			}})
		}
		return nil, errOtherAddress
	}
	err = process.PatchPodStatus(ctx, p.handle.ClientSet().CoreV1(), pod, seen, types.MergePatchType, makePatch)
	if err != nil {
		return fmt.Errorf("writing the address of pod %s/%s, %s: %w", pod.Namespace, pod.Name, text, err)
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
