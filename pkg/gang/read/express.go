package read

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

// WithoutGang returns a copy of the pod that is in no gang: without labels and annotations of gangs and, with byOwner
// set, without its controller.
func WithoutGang(pod *v1.Pod, byOwner bool) *v1.Pod {
	out := pod.DeepCopy()
	for _, key := range append(Labels(), MinAvailableLabel, grovePodGang, kueueGroup) {
		delete(out.Labels, key)
	}
	for _, key := range append(GroupAnnotations(), wellknown.GangKey, kueueGroup, volcanoMinMember, kaiMinMember) {
		delete(out.Annotations, key)
	}
	out.Spec.SchedulingGroup = nil
	if byOwner {
		out.OwnerReferences = nil
		delete(out.Labels, leaderWorkerSetNameLabel)
	}
	return out
}

// Join makes a pod a member of the PodGroup of that name in its namespace.
func Join(pod *v1.Pod, name string) {
	metav1.SetMetaDataLabel(&pod.ObjectMeta, schedulingv1alpha1.PodGroupLabel, name)
}

// NewPodGroup returns a PodGroup.
func NewPodGroup(namespace, name string, minMember int) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minMember": int64(minMember)}}}
	group.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
	group.SetNamespace(namespace)
	group.SetName(name)
	return group
}
