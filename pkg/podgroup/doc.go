// Package podgroup is the controller of PodGroups. It writes their status, creates one for each gang that only labels or
// a workload object declare, tells pending members why they wait, and records events about gangs and about single pods.
// It follows the objects whose controllers create the pods of gangs, and watches members that have ended.
//
// Coscheduling makes one Controller and one Owners for all profiles of a process, and calls Enqueue when a gang may look
// different. The controller asks for the state of the gang as a value, computes what should be written without side
// effects, and writes what differs from the informers' caches. It writes only in the scheduler that leads.
//
// It never schedules, and it knows neither the scheduling queue nor the framework. What a gang needs and whether it fits
// is decided by its caller.
package podgroup
