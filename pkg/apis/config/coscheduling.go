package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true

// CoschedulingArgs tunes the Coscheduling plugin.
type CoschedulingArgs struct {
	metav1.TypeMeta `json:",inline"`
}

// SetDefaultsCoschedulingArgs fills the fields that were left out.
func SetDefaultsCoschedulingArgs(_ *CoschedulingArgs) {}
