// Package plan places a set of pods on a copy of the cluster within one scheduling cycle, with the profile's own
// filters, scores and reservations.
//
// Planner makes plans for gangs: it chooses the domains and the GPU models, and orders the members. Run is one dry run,
// Class the part of it for members that are alike. The cycle of a gang's leader calls it, and the check of proposed
// evictions. It binds nothing, and gives back what it reserves with plugins. It must be called within a scheduling
// cycle: only one runs at a time.
package plan
