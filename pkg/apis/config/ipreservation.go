package config

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/wellknown"
)

// +kubebuilder:object:root=true

// IPReservationArgs are the arguments of the IPReservation plugin.
type IPReservationArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Annotation of the pod that the address is written into, for the CNI plugin to read. Any but `berth.dev/ip-pool`,
	// default `berth.dev/ip-address`.
	AddressAnnotation *string `json:"addressAnnotation,omitempty"`
	// Form of the annotation's value. `Plain`: the address alone, `10.0.0.5`. `JSONList`: a JSON list of one address,
	// `["10.0.0.5"]`. Default `Plain`.
	AddressFormat *AddressFormat `json:"addressFormat,omitempty"`
}

// AddressFormat is how an address is written into an annotation.
type AddressFormat string

// The forms that IPReservationArgs describes.
const (
	AddressPlain    AddressFormat = "Plain"
	AddressJSONList AddressFormat = "JSONList"
)

// SetDefaults fills the fields that were left out.
func (a *IPReservationArgs) SetDefaults() {
	setDefault(&a.AddressAnnotation, wellknown.IPAddressKey)
	setDefault(&a.AddressFormat, AddressPlain)
}

// Validate checks defaulted args that stand at path in the configuration.
func (a *IPReservationArgs) Validate(path *field.Path) error {
	var errs field.ErrorList
	if problems := validation.IsQualifiedName(strings.ToLower(*a.AddressAnnotation)); len(problems) > 0 {
		errs = append(errs, field.Invalid(path.Child("addressAnnotation"), *a.AddressAnnotation,
			strings.Join(problems, "; ")))
	}
	if *a.AddressAnnotation == wellknown.IPPoolKey {
		errs = append(errs, field.Invalid(path.Child("addressAnnotation"), *a.AddressAnnotation,
			"names the pool that a pod asks for"))
	}
	errs = append(errs, validateEnum(path.Child("addressFormat"), *a.AddressFormat,
		[]AddressFormat{AddressPlain, AddressJSONList})...)
	return errs.ToAggregate()
}
