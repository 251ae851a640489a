// Package eviction decides which pods make room for a gang, or for a single pod, at the least cost.
//
// Choose answers a Problem, which is plain data: what the members ask for, what the nodes have free, and which pods may
// go. It removes pods until the members fit, and then puts back every pod that still fits. Cost is the one measure of
// what an eviction costs: by priority, the work that is lost, which is given, and then pods.
//
// The coscheduling plugin builds the problem, checks the plan with the filters of its profile, and evicts the pods.
// This package never does any of that: it knows no Kubernetes, no clock and no lock.
package eviction
