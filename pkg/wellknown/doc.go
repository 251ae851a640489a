// Package wellknown has all labels, annotations and taints of Berth, the default names of GPUs, and BadValue, the error
// about a bad value.
//
// All packages that read or write such a key take it from here. Keys of other projects are in the package that reads
// them: gpuview for GPUs, gang/read for gangs, priceview for prices. It never imports Kubernetes, and keeps no state.
package wellknown
