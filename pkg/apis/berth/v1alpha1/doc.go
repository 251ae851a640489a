// Package v1alpha1 holds the types of the group berth.dev: PlacementPolicy, the rules of a platform team on licenses,
// datasets and compliance, and IPPool and IPReservation, the fixed addresses of pods and where each is routable. The
// plugins PlacementPolicy and IPReservation read them.
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

// ConditionAccepted is the condition that is true for an IPPool whose addresses are given out, with the reason Usable or,
// if it is false, Invalid; and for a PlacementPolicy while all of its rules can be evaluated.
const ConditionAccepted = "Accepted"

// AddToScheme adds the package's types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &PlacementPolicy{}, &PlacementPolicyList{}, &IPPool{}, &IPPoolList{},
		&IPReservation{}, &IPReservationList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
