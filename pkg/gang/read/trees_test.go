package read

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func nativeObject(version, kind, name, parent string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.k8s.io/" + version, "kind": kind,
		"metadata": map[string]any{"namespace": "ns", "name": name},
		"spec":     map[string]any{"parentCompositePodGroupName": parent}}}
}

func TestATreeIsOneGang(t *testing.T) {
	t.Parallel()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("a")}
	job := nativeObject("v1alpha3", "CompositePodGroup", "job", "")
	inJob := nativeObject("v1beta1", "PodGroup", "a", "job")
	for name, test := range map[string]struct {
		objects []runtime.Object
		gang    string
	}{
		"a PodGroup whose tree does not exist": {[]runtime.Object{inJob}, "native.a"},
		"a PodGroup before its tree":           {[]runtime.Object{inJob, job}, "composite.job"},
		"a PodGroup after its tree":            {[]runtime.Object{job, inJob}, "composite.job"},
		"beside another kind":                  {[]runtime.Object{&v1.Pod{}, job, inJob}, "composite.job"},
		"a PodGroup in no tree": {[]runtime.Object{job, nativeObject("v1beta1", "PodGroup", "a", "")},
			"native.a"},
	} {
		if m, err := TreesOf(test.objects).GangOf(pod); err != nil || m.ID.Name != test.gang {
			t.Errorf("%s: the gang is %s (%v), want %s", name, m.ID.Name, err, test.gang)
		}
	}
}
