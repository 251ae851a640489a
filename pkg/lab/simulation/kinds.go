package simulation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/lab/simulation/memapi"
)

// Fill puts the objects of a cluster into the API, which then serves their kinds. Take returns what is put there of
// each, nil for nothing; the API owns it.
func Fill(api *memapi.Server, objects []runtime.Object, take func(runtime.Object) runtime.Object) error {
	ServeCustomKinds(api, objects)
	for _, obj := range objects {
		if obj = take(obj); obj == nil {
			continue
		}
		if err := api.Create(obj); err != nil {
			return fmt.Errorf("filling the cluster: %w", err)
		}
	}
	return nil
}

// ServeCustomKinds makes the API know Berth's own kinds, and those custom resources that are among the objects, in the
// version that these have: readers take the newest that is served.
func ServeCustomKinds(api *memapi.Server, objects []runtime.Object) {
	present := map[schema.GroupVersionKind]bool{
		schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"):       true,
		placementv1alpha1.SchemeGroupVersion.WithKind("PlacementPolicy"): true,
		networkv1alpha1.SchemeGroupVersion.WithKind("IPPool"):            true,
		networkv1alpha1.SchemeGroupVersion.WithKind("IPReservation"):     true}
	for _, obj := range objects {
		present[obj.GetObjectKind().GroupVersionKind()] = true
	}
	for _, kind := range inputs.Kinds() {
		gvk := kind.GroupVersion().WithKind(kind.Kind)
		if present[gvk] && !scheme.Scheme.Recognizes(gvk) {
			api.Register(kind.GroupVersionResource, kind.Kind, !kind.Cluster)
		}
	}
}
