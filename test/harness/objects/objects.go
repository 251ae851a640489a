package objects

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/require"
)

// Pairs makes a map of keys that are followed by their values.
func Pairs[K ~string](pairs []string) map[K]string {
	m := make(map[K]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[K(pairs[i])] = pairs[i+1]
	}
	return m
}

// Pod makes a pod of the default namespace that has its name for a UID and asks for resources, each with its amount.
func Pod(name string, asks ...string) *st.PodWrapper {
	return st.MakePod().Namespace(metav1.NamespaceDefault).Name(name).UID(name).Req(Pairs[v1.ResourceName](asks))
}

// Node makes a node that has its name for a UID and offers 110 pods and these resources, each with its amount.
func Node(name string, offers ...string) *st.NodeWrapper {
	return st.MakeNode().Name(name).UID(name).Capacity(Pairs[v1.ResourceName](append([]string{"pods", "110"}, offers...)))
}

// Labelled makes a node with labels, each with its value.
func Labelled(node *st.NodeWrapper, labels ...string) *v1.Node {
	for key, value := range Pairs[string](labels) {
		node.Label(key, value)
	}
	return node.Obj()
}

// Namespace makes a namespace with labels, each with its value.
func Namespace(name string, labels ...string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: Pairs[string](labels)}}
}

// Custom makes a cluster-wide object of berth.dev/v1alpha1 with this spec, which is YAML. Its UID is its name.
func Custom(tb testing.TB, kind, name, spec string) *unstructured.Unstructured {
	tb.Helper()
	var fields map[string]any
	require.NoError(tb, yaml.Unmarshal([]byte(spec), &fields))
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": kind,
		"spec": fields}}
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetGeneration(1)
	return o
}
