// Package v1alpha1 holds the PodGroup type of the group scheduling.x-k8s.io. It is wire-compatible with the type of
// kubernetes-sigs/scheduler-plugins: the same group, names, label and fields, so that manifests written for that
// project work unchanged; conditions are added to the status.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the package.
const GroupName = "scheduling.x-k8s.io"

// SchemeGroupVersion is the group and version of the package's types.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme adds the package's types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &PodGroup{}, &PodGroupList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
