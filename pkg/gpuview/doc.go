// Package gpuview reads what nodes and pods say of GPUs into the values of package gpu: a node's inventory out of
// labels, annotations and allocatable resources, a pod's request in one of several dialects, and the devices that a pod
// was given. Each dialect of a sharing project is one file. GPUs of resource claims are read by package claimview.
//
// What cannot be read is a wellknown.BadValue. The package keeps no state but the names that the profiles of one
// scheduler tell each other.
package gpuview
