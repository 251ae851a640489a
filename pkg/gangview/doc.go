// Package gangview reads which gang a pod is a member of, and what is said of the gang, into the values of package
// gang: by labels, by a PodGroup, or by the object whose controller makes the pods. It also reads roles, topology
// levels, and which labels only number pods.
//
// It keeps no state but what the profiles of one scheduler tell each other: the policy for owners, and where gangs find
// nodes in the network. It writes no object; the helpers of express.go build groups for tests and simulations.
package gangview
