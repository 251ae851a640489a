// Package advise says what would help a cluster now: which pods to move so that pending work starts or a node can be
// given back, and what would start with more nodes of a known kind.
//
// The command berth advise calls Cluster with a snapshot and a scheduler configuration. Every piece of advice comes
// from a run of the real scheduler on the changed cluster in memory (package simulation). It changes nothing in the
// cluster: it prints kubectl commands.
package advise
