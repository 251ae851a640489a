// Package sla decides in which order pods with service levels are tried, and how well a node meets a pod's objective.
//
// It knows no Kubernetes: a class is a few durations, a node is a measured figure, and no function asks for the time.
// The order of two pods is a comparison of two fixed instants, so that it never changes while they wait.
//
// Coscheduling orders the queue by it, and SLAAware scores nodes by it. It keeps no state and measures nothing.
package sla
