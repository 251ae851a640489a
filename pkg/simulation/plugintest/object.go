package plugintest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/simulation/memapi"
)

// Object is a cluster-wide object of berth.dev/v1alpha1 with this spec, which is YAML. Its UID is its name.
func Object(tb testing.TB, kind, name, spec string) *unstructured.Unstructured {
	tb.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		tb.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": kind, "spec": fields}}
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetGeneration(1)
	return o
}

// Apply creates the object, or gives the one of its name its spec, as an edit does: with the next generation and the status as it was.
func Apply(tb testing.TB, api *memapi.Server, resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	tb.Helper()
	known, _ := api.Get(resource, types.NamespacedName{Name: object.GetName()}).(*unstructured.Unstructured)
	if known == nil {
		if err := api.Create(object); err != nil {
			tb.Fatal(err)
		}
		return
	}
	client, err := dynamic.NewForConfig(api.RESTConfig())
	if err != nil {
		tb.Fatal(err)
	}
	edited := known.DeepCopy()
	edited.Object["spec"] = object.Object["spec"]
	edited.SetGeneration(known.GetGeneration() + 1)
	if _, err := client.Resource(resource).Update(tb.Context(), edited, metav1.UpdateOptions{}); err != nil {
		tb.Fatal(err)
	}
}
