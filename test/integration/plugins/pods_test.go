package plugins_test

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
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

// gpus is a test's part of a control plane with the shipped configuration.
type gpus struct{ *box.Box }

// gpuPod makes a pod of one CPU with these requests and annotations besides.
func gpuPod(name string, requests, annotations strs) *v1.Pod {
	return pod(name, "gpu-aware-scheduler", asking(strs{"cpu": "1"}), asking(requests), annotated(annotations))
}

// refused waits until it is known that the pod finds no free share, and fails if it is bound.
func (g *gpus) refused(t *testing.T, name string) {
	t.Helper()
	g.Pending(t, name, "free GPU share (need ")
}

// said waits for one event of a reason on a pod.
func (g *gpus) said(t *testing.T, pod, reason string) {
	t.Helper()
	g.Told(t, pod, reason)
	if n, err := g.Events(t.Context(), pod, reason); n != 1 || err != nil {
		t.Errorf("%d events %s on pod %s, %v", n, reason, pod, err)
	}
}
