// Package read reads which gang a pod is in, and what is declared for the gang, into the values of package gang: by
// labels, by a PodGroup, or by the object whose controller creates the pods. It also reads roles and topology levels.
//
// Coscheduling, the controller of PodGroups and the tools call it. It keeps only what the profiles of one scheduler
// share: the policy for owners, and where gangs find nodes in the network. It writes no object; the helpers of
// express.go build groups for tests and simulations.
package read
