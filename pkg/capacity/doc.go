// Package capacity knows what is free in the cluster, by class of demand.
//
// Index owns the count. For each live shape of pods it knows how many fit, now and if no pod ran, on all nodes and by
// domain, and what keeps pods off the other nodes. The scheduler's cache calls its Feed; gangs that wait, plans,
// reservations and the search for pods to evict ask it. Looks says what has changed since the last look at gangs, and
// Cluster returns nodes and pods. The count is optimistic: what it rules out does not fit, but the profile's filters
// may refuse what it lets pass. It never reads a scheduling cycle and decides nothing.
package capacity
