// Package plan places a set of pods on a copy of the cluster within one scheduling cycle, with the profile's own
// filters, scores and reservations.
//
// Planner makes plans for gangs: it chooses the domains and the GPU models, orders the members, and keeps plans that
// take several cycles. Run is one dry run, Class the part of it that concerns members that are alike. The leader's
// cycle calls it, and the check of what evictions would make room for. It binds nothing, and what it reserves with
// plugins it gives back. It must be called within a scheduling cycle; there is one at a time.
package plan
