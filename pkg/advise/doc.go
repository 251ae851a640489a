// Package advise says what would help a cluster now: which pods to move so that pending work starts or a node can be
// given back, and what more nodes of a known kind would let start.
//
// The command berth advise calls Cluster with a snapshot and a scheduler configuration. What it says about placements
// it has seen: each answer is a run of the real scheduler over the cluster in memory (package simulation), with the
// change applied. It changes nothing in the cluster: it prints the commands of kubectl that do.
package advise
