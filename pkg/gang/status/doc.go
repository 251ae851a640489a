// Package status is the controller of PodGroups. It writes their status, creates one for each gang that only labels
// or a workload object declare, tells pending members why they wait, and records events about gangs and single pods. It
// also follows the objects whose controllers create the pods of gangs, and members that have ended.
//
// Coscheduling makes one Controller and one Owners for all profiles of a process. Its loop calls Enqueue when a gang
// may look different. The controller reads the state of the gang from the ledger as a value, computes what should be
// written, and writes what differs from the caches of the informers. It writes only in the scheduler that leads.
//
// It never schedules and does not know the queue. Its caller decides what a gang needs and whether it fits.
package status
