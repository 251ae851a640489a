// Package alone has the scheduler's own preemption, which serves single pods, choose victims by what they lose.
//
// Losses compares pods; Fewest looks for fewer victims on a node where plugins count more than a node's resources, and
// orders the nodes. The evictor puts both into the preemption plugin of each profile. The package evicts no pod, and
// knows of gangs only that their pods have notice.
package alone
