package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true

// CostOptimizedArgs tunes the CostOptimized plugin.
type CostOptimizedArgs struct {
	metav1.TypeMeta `json:",inline"`
}

// SetDefaultsCostOptimizedArgs fills the fields that were left out.
func SetDefaultsCostOptimizedArgs(_ *CostOptimizedArgs) {}
