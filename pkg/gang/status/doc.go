// Package status is the controller of PodGroups. It writes their status, creates one for each gang that only labels or
// a workload object declare, writes to pending members why they wait, and records events about gangs and single pods.
// It also follows the objects whose controllers create the pods of gangs, and members that have ended.
//
// Coscheduling makes one Controller and one Owners for each process, and gang/loop calls Enqueue when a gang may look
// different. The controller reads the state of a gang from the ledger, computes what to write, and writes what differs
// from the informers' caches, if the scheduler leads. It never schedules, and decides neither what a gang needs nor
// whether it fits.
package status
