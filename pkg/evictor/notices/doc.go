// Package notices tells pods that they are to be evicted and for what, takes that back, and evicts them.
//
// Notifier gives notice to pods that ask for it, and says when all victims of one eviction have had theirs. Remove
// marks a pod as disrupted and deletes it. For whose sake pods go is a name, such as that of a gang; RepairOf and
// MovesFor make the names of evictions that are no preemption. KeepRequests keeps an EvictionRequest for each pod that
// has notice and names responders, which hear of the notice by it.
//
// The evictor calls it from the loop of gangs and from cycles; all requests to the API server are made beside them. It
// chooses no victims.
package notices
