// Package eviction chooses the pods whose eviction lets a gang, or a single pod, start at the lowest cost.
//
// Choose answers a Problem, which is plain data: what the members ask for, what the nodes have free, and which pods may
// be evicted. It removes pods until the members fit, and then puts back every pod that still fits. Cost orders
// evictions: by priority, then by lost work, which the caller gives, then by pods.
//
// Package preempt builds the problem, checks the plan with the filters of the profile, and evicts the pods. This
// package knows no Kubernetes, no clock and no lock.
package eviction
