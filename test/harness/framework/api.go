package framework

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/harness/require"
)

// API is one in memory that has these custom resources, cluster-wide, by their kinds.
func API(kinds map[string]schema.GroupVersionResource) *memapi.Server {
	api := memapi.New()
	for kind, resource := range kinds {
		api.Register(resource, kind, false)
	}
	return api
}

// Create creates copies of objects in an API.
func Create(tb testing.TB, api *memapi.Server, objects ...runtime.Object) {
	tb.Helper()
	for _, o := range objects {
		o = o.DeepCopyObject()
		if o.GetObjectKind().GroupVersionKind().Empty() {
			kinds, _, err := scheme.Scheme.ObjectKinds(o)
			require.NoError(tb, err)
			// Clients that speak JSON need the kind, which an object made by code does not have.
			o.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
		require.NoError(tb, api.Create(o))
	}
}

// Create creates copies of objects.
func (s *Scheduler) Create(tb testing.TB, objects ...runtime.Object) {
	tb.Helper()
	Create(tb, s.API, objects...)
}

// Apply creates a custom object, or gives the one of its name its spec, as an edit does: with the next generation and
// the status as it was.
func (s *Scheduler) Apply(tb testing.TB, resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	tb.Helper()
	known, _ := s.API.Get(resource, types.NamespacedName{Name: object.GetName()}).(*unstructured.Unstructured)
	if known == nil {
		s.Create(tb, object)
		return
	}
	client, err := dynamic.NewForConfig(s.API.RESTConfig())
	require.NoError(tb, err)
	edited := known.DeepCopy()
	edited.Object["spec"] = object.Object["spec"]
	edited.SetGeneration(known.GetGeneration() + 1)
	if _, err := client.Resource(resource).Update(tb.Context(), edited, metav1.UpdateOptions{}); err != nil {
		tb.Fatal(err)
	}
}

// Delete deletes an object, which has no namespace if that is empty.
func (s *Scheduler) Delete(tb testing.TB, resource schema.GroupVersionResource, namespace, name string) {
	tb.Helper()
	if !s.API.Delete(resource, types.NamespacedName{Namespace: namespace, Name: name}) {
		tb.Fatalf("there is no %s %s", resource.Resource, name)
	}
}

// DeletePod deletes a pod of the default namespace.
func (s *Scheduler) DeletePod(tb testing.TB, name string) {
	tb.Helper()
	s.Delete(tb, v1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceDefault, name)
}
