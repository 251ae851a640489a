// Package clusterstate is what the profiles of one scheduler know of the cluster together and keep up to date from informers:
// entries by node, bad values that were reported, the gangs of pods, and the devices that claims hold.
//
// Package kubeview reads an object and returns what it says; this package remembers. The values that a scheduler has once
// belong to its informer factory, as package informers has it.
package clusterstate
