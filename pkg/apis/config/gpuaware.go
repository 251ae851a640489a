package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true

// GPUAwareArgs tunes the GPUAware plugin.
type GPUAwareArgs struct {
	metav1.TypeMeta `json:",inline"`
}

// SetDefaultsGPUAwareArgs fills the fields that were left out.
func SetDefaultsGPUAwareArgs(_ *GPUAwareArgs) {}
