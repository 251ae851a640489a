// Package advise says what would help a cluster now: which pods to move so that pending work starts or a node can be
// given back, what one more node of a known kind would let start, and which requests leave GPUs without the CPU or
// memory to use them.
//
// The command berth advise calls Cluster with a snapshot and a scheduler configuration. What it says about placements
// it has seen: each answer is a run of the real scheduler over the cluster in memory (package simulation), with the
// change applied. It changes nothing in the cluster; package carry does, where a user asks for it.
package advise
