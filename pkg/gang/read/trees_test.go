package read

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	trees := TreesOf(nil)
	job := nativeObject("v1alpha3", "CompositePodGroup", "job", "")
	for _, step := range []struct {
		name  string
		do    func() []string
		moved []string
		gang  string
	}{
		{"the PodGroup comes before its tree",
			func() []string { return trees.Set(nativeObject("v1beta1", "PodGroup", "a", "job")) }, nil, "native.a"},
		{"the tree comes", func() []string { return trees.Set(job) }, []string{"a"}, "composite.job"},
		{"another kind", func() []string { return trees.Set(&v1.Pod{}) }, nil, "composite.job"},
		{"the PodGroup leaves the tree", func() []string { return trees.Set(nativeObject("v1beta1", "PodGroup", "a", "")) },
			[]string{"a"}, "native.a"},
		{"the tree is gone", func() []string { return trees.Delete(job) }, nil, "native.a"},
	} {
		if moved := step.do(); !slices.Equal(moved, step.moved) {
			t.Errorf("%s: moved %v, want %v", step.name, moved, step.moved)
		}
		if m, err := trees.GangOf(pod); err != nil || m.ID.Name != step.gang {
			t.Errorf("%s: the gang is %s (%v), want %s", step.name, m.ID.Name, err, step.gang)
		}
	}
}
