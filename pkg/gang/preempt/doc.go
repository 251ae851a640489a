// Package preempt evicts pods so that a gang can start, or a single pod that needs more than the scheduler's own
// preemption evicts: whole gangs.
//
// Evictor owns the evictions that have begun. It makes a problem of the account of capacity, gangs, budgets and holds,
// lets package eviction solve it in the background, and evicts the victims. Profile checks the solution in a scheduling
// cycle with the filters of its profile, and makes the scheduler's own preemption spare gangs and work. Loss computes
// what the eviction of a pod loses; the tool asks it, too, when it proposes moves and explains a choice.
//
// The coscheduling plugin calls it in PostFilter, and gang/loop in each round. A cycle never waits for a search or the
// API server. Package eviction decides which pods are evicted.
package preempt
