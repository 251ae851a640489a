// Package order says which of the pods in the scheduling queue comes first.
//
// Key is the place of a pod. The ledger of gangs fixes the keys of members, and the queue's plugin those of other pods;
// the queue, the loop and what plans ahead compare them.
//
// The package keeps no state, and no comparison depends on the time of asking.
package order
