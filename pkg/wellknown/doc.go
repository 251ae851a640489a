// Package wellknown is the one table of Berth's own labels, annotations and taints, with the default names of GPUs and
// BadValue, the sentence about a value that cannot be used.
//
// All packages that read or write such a key take it from here. The package knows no Kubernetes and keeps no state.
// Keys of other projects are in the package that reads them: gpuview for GPUs, gang/read for gangs, priceview for
// prices.
package wellknown
