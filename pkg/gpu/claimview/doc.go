// Package claimview knows the devices of dynamic resource allocation. It reads resource slices and claims, counts which
// devices of each node are allocated, and finds out what the claims of a pod ask of GPUs.
//
// GPUs owns that, once for all profiles of a scheduler. The plugins GPUAware and CostOptimized and the overview call
// it. It allocates nothing: the plugin DynamicResources does. It never writes a claim.
package claimview
