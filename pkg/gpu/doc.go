// Package gpu is the domain of GPU placement: what a node has, what a pod asks, whether one fits the other, which
// devices it would take, and how much GPU the placement is expected to waste.
//
// GPU compute is counted in milli-GPU (1000 = one physical GPU), GPU memory in MiB, CPU in milli-cores.
//
// The views gpuview and claimview make its values; GPUAware and the tools decide by them. What makers and providers
// document is in catalog. It never reads an object of Kubernetes or the clock, and keeps no state but caches.
package gpu
