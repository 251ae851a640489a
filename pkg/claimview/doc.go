// Package claimview knows the devices of dynamic resource allocation. It reads resource slices and claims, keeps what
// it has read until something changes, and asks the allocator of Kubernetes what a pod would get on a node.
//
// GPUs owns that, once for all profiles of a scheduler. The plugins GPUAware and CostOptimized and the overview call
// it. It allocates nothing: the plugin DynamicResources does. It never writes a claim.
package claimview
