// Package read reads which gang a pod is in, and what is declared for the gang, into the values of package gang: from
// labels, a PodGroup, the object whose controller creates the pods, or the group of another scheduler. It also reads
// roles and topology levels.
//
// Coscheduling, the controller of PodGroups and the tool call it. It keeps only the policy for owners that the profiles
// of one scheduler share, and never writes an object; express.go builds groups for simulations.
package read
