// Package sets divides the members of a gang into sets that each share a domain of the topology: groups within the
// gang, or segments of its ranks. It poses in numbers which domain each set gets.
//
// Divider reads the ledger, the pods and the PodGroup; Problem has what nodes have free, and package tree solves it.
// The dry run, the evictor and reservations call it. It places nothing and keeps no state.
package sets
