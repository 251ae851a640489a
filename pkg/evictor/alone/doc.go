// Package alone has the scheduler's own preemption, which serves single pods, choose victims by what they lose and
// leave gangs whole.
//
// Losses compares pods; Fewest looks for fewer victims on a node where plugins count more than a node's resources, and
// orders the nodes; Guard asks the ledger of gangs before a pod is chosen, and before it is evicted; Preempting has
// pods tried again that wait for victims. The evictor puts them into the preemption plugin of each profile. The package
// evicts no pod.
package alone
