// Package claimview knows the devices of dynamic resource allocation: it reads resource slices and claims, keeps what
// it has read until something changes, and asks the allocator of Kubernetes what a pod would get on a node. All
// profiles of one scheduler share one GPUs. The plugins GPUAware and CostOptimized call it.
//
// It allocates nothing: that is for the plugin DynamicResources.
package claimview
