// Package v1alpha1 holds the PlacementPolicy type of the group berth.dev: rules of a platform team on licenses, datasets
// and compliance that the plugin PlacementPolicy enforces.
//
// +kubebuilder:object:generate=true
// +groupName=berth.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the package.
const GroupName = "berth.dev"

// SchemeGroupVersion is the group and version of the package's types.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme adds the package's types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &PlacementPolicy{}, &PlacementPolicyList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
