// Package wellknown is the one table of Berth's own labels, annotations and taints, with the default names of GPUs and
// the sentence about a value that cannot be used. It knows no Kubernetes. Keys of other projects stand in the room that
// reads them: those of GPUs in gpuview, one file a dialect, those of gangs in gangview, those of prices in priceview.
package wellknown
