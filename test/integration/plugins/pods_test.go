package plugins_test

import (
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

type strs = map[string]string

// pod makes a pod for a profile that ends at once when it is deleted, and changes it in turn.
func pod(name, profile string, changes ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: strs{}, Annotations: strs{}},
		Spec: v1.PodSpec{SchedulerName: profile, TerminationGracePeriodSeconds: ptr.To[int64](0), NodeSelector: strs{},
			Containers: []v1.Container{{Name: "c", Image: "work:1",
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}}}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// asking adds what the pod requests. Its limits are the same, as extended resources want it.
func asking(amounts strs) func(*v1.Pod) {
	return func(p *v1.Pod) {
		resources := &p.Spec.Containers[0].Resources
		for name, amount := range amounts {
			resources.Requests[v1.ResourceName(name)] = resource.MustParse(amount)
			resources.Limits[v1.ResourceName(name)] = resource.MustParse(amount)
		}
	}
}

func annotated(annotations strs) func(*v1.Pod) {
	return func(p *v1.Pod) { maps.Copy(p.Annotations, annotations) }
}

func labeled(labels strs) func(*v1.Pod) {
	return func(p *v1.Pod) { maps.Copy(p.Labels, labels) }
}

// selecting lets the pod run on nodes with these labels only.
func selecting(labels strs) func(*v1.Pod) {
	return func(p *v1.Pod) { maps.Copy(p.Spec.NodeSelector, labels) }
}

// ganged makes the pod a member of a gang by labels.
func ganged(gang, minimum string) func(*v1.Pod) {
	return labeled(strs{"pod-group.scheduling.sigs.k8s.io/name": gang,
		"pod-group.scheduling.sigs.k8s.io/min-available": minimum})
}

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// podGroup makes a PodGroup with this minimum.
func podGroup(name string, minimum int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind":     "PodGroup",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"minMember": int64(minimum)}}}
}

// nativeGroup creates a group of the scheduler's core and its members, which are made by their names.
func nativeGroup(t *testing.T, b *box.Box, name string, members int, member func(name string) *v1.Pod) {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(members)}
	groups := b.Client.SchedulingV1beta1().PodGroups(b.Namespace)
	if _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range numbered(name, members) {
		p := member(pod)
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		b.Create(t, p)
	}
}

// numbered are the names of the members of a group: group-0, group-1, …
func numbered(group string, members int) []string {
	names := make([]string, members)
	for i := range names {
		names[i] = fmt.Sprint(group, "-", i)
	}
	return names
}
