package inputs

import (
	"fmt"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
)

// Keep returns a copy of an object with the fields that a scheduler reads. Only the fields in a list are copied, so
// that unknown fields are left out, as are environment variables, commands, names of Secrets and annotations that do
// not affect placement. The copy is typed for kinds of Kubernetes, else unstructured. An object that a dump does not
// hold is an error.
func Keep(obj runtime.Object) (runtime.Object, error) {
	gvk, err := KindOf(obj)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(kinds, func(k Kind) bool { return k.Dumped && k.gvk() == gvk })
	if at < 0 {
		return nil, fmt.Errorf("%s is not a kind that a dump holds", gvk)
	}
	return kinds[at].keep(obj)
}

// KindOf is the kind of an object. A typed object need not name it.
func KindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if gvk := obj.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
		return gvk, nil
	}
	kinds, _, err := types.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return kinds[0], nil
}

// keep returns what Keep keeps of an object of the kind.
func (k *Kind) keep(obj runtime.Object) (runtime.Object, error) {
	fields, listed := masks[k.GroupResource().String()]
	if !listed {
		return k.keepOwner(obj)
	}
	typed, err := k.typed(obj)
	if err != nil {
		return nil, err
	}
	kept := reflect.New(reflect.TypeOf(typed).Elem())
	fields.copy(kept.Elem(), reflect.ValueOf(typed).Elem())
	out := kept.Interface().(runtime.Object)
	reduce(out)
	out.GetObjectKind().SetGroupVersionKind(k.gvk())
	if clientscheme.Scheme.Recognizes(k.gvk()) {
		return out, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out)
	return &unstructured.Unstructured{Object: content}, err
}

// typed is the object as the Go type of its kind.
func (k *Kind) typed(obj runtime.Object) (runtime.Object, error) {
	untyped, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	typed, err := types.New(k.gvk())
	if err != nil {
		return nil, err
	}
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(untyped.Object, typed)
}

// keepOwner keeps the fields of an object that say whether its pods form a gang.
func (k *Kind) keepOwner(obj runtime.Object) (runtime.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	kind, known := read.GroupKindOf(k.gvk())
	if !known {
		kind, _ = read.OwnerKindOf(k.Kind) // all other kinds without fields of their own are from there
	}
	kept := kind.Keep(&unstructured.Unstructured{Object: content})
	kept.SetGroupVersionKind(k.gvk())
	if !clientscheme.Scheme.Recognizes(k.gvk()) {
		return kept, nil
	}
	return k.typed(kept)
}

// reduce leaves out parts of a copy of fields by what they hold.
func reduce(obj runtime.Object) {
	m := obj.(metav1.Object)
	annotations := map[string]string{}
	for _, key := range placementAnnotations {
		if value, ok := m.GetAnnotations()[key]; ok {
			annotations[key] = value
		}
	}
	if m.SetAnnotations(nil); len(annotations) > 0 {
		m.SetAnnotations(annotations)
	}
	switch o := obj.(type) {
	case *v1.Pod:
		reducePod(o)
	case *schedulingv1alpha1.PodGroup:
		o.Status.Conditions = slices.DeleteFunc(slices.Clone(o.Status.Conditions), func(c metav1.Condition) bool {
			return c.Type != schedulingv1alpha1.PodGroupReserved
		})
		if len(o.Status.Conditions) == 0 {
			o.Status = schedulingv1alpha1.PodGroupStatus{}
		}
	}
}

// reducePod leaves out ports that are not of the host, volumes that do not restrict the nodes, statuses of containers
// without resources, which differ from the spec during a resize, and most messages.
func reducePod(pod *v1.Pod) {
	s := &pod.Spec
	for _, containers := range [][]v1.Container{s.Containers, s.InitContainers} {
		for i := range containers {
			containers[i].Ports = slices.DeleteFunc(containers[i].Ports,
				func(p v1.ContainerPort) bool { return p.HostPort == 0 })
		}
	}
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v v1.Volume) bool { return v.VolumeSource == v1.VolumeSource{} })
	for _, statuses := range []*[]v1.ContainerStatus{&pod.Status.ContainerStatuses, &pod.Status.InitContainerStatuses} {
		*statuses = slices.DeleteFunc(*statuses,
			func(c v1.ContainerStatus) bool { return c.AllocatedResources == nil && c.Resources == nil })
	}
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; c.Type {
		case v1.PodScheduled, gpuview.GPUsAssigned, work.DeadlineMissed:
		default:
			c.Message = ""
		}
	}
}
