// Package gpuview reads what nodes and pods say about GPUs into the values of package gpu: the inventory of a node from
// labels, annotations and allocatable resources, the request of a pod in one of several dialects, and the devices that
// a pod was given. Each dialect of a sharing project is one file. Package claimview reads GPUs of resource claims.
//
// The plugins GPUAware and CostOptimized, the node agent and the tools call it. It keeps only the names that the
// profiles of one scheduler share. What cannot be read is a wellknown.BadValue. It writes no object.
package gpuview
