// Package capacity knows what is free in the cluster, by class of demand.
//
// Index owns it: fed by the scheduler's cache, it counts for each shape of pods that is asked about how many fit, now
// and if no pod ran, on all nodes and by domain, and what keeps the others away. Gangs that wait, plans, reservations
// and the search for pods to evict ask it. Its Feed is told what changes, its Looks say what has since the last look,
// and its Cluster knows nodes and pods whatever shapes ask for. It is optimistic: what it rules out does not fit, what
// it lets pass may still be refused by the profile's filters. It never looks at a scheduling cycle, decides nothing,
// and holds no lock while it calls out.
package capacity
