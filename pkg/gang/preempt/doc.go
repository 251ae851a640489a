// Package preempt has pods evicted so that a gang can start, or a pod that only a gang can make way for.
//
// Evictor turns the account of free capacity, gangs, budgets and holds into a problem, has package eviction solve it in
// the background, and evicts the victims. Profile is its part in a scheduling cycle: it checks with the profile's own
// filters what was found, keeps the capacity for the gang, and makes the scheduler's own preemption leave gangs whole.
// Losses have that compare pods and nodes by the work that is lost, and Guard asks the ledger of gangs before that
// chooses and evicts a pod.
//
// The coscheduling plugin calls it in PostFilter, and its loop once a turn. A cycle never waits for a search or for the
// API server. Which pods make room at the least cost is decided in package eviction.
package preempt
