package subject

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FindPod returns the pod of that name. The error says where else a pod of the name is, or which name is like it.
func FindPod(objects []runtime.Object, namespace, name string) (*v1.Pod, error) {
	name = strings.TrimPrefix(name, "pod/")
	var elsewhere []string
	for _, obj := range objects {
		pod, ok := obj.(*v1.Pod)
		if !ok || pod.Name != name {
			continue
		}
		if pod.Namespace == namespace {
			return pod, nil
		}
		elsewhere = append(elsewhere, pod.Namespace)
	}
	hint := ""
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		hint = "; there is one in " + strings.Join(elsewhere, ", ")
	}
	return nil, fmt.Errorf("there is no pod %s in namespace %s%s", name, namespace, hint)
}

// Pod returns the pod of that name.
func (m *Manifest) Pod(name string) (*v1.Pod, error) {
	var names []string
	for _, pod := range m.Pods {
		if pod.Name == name {
			return pod, nil
		}
		names = append(names, pod.Name)
	}
	return nil, fmt.Errorf("the manifest has no pod %s; it has %s", name, strings.Join(names, ", "))
}
