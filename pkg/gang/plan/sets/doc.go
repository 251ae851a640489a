// Package sets divides the members of a gang into sets that each share a domain of the topology, groups within the gang
// or segments of its ranks, and poses in numbers which domain each of them is to get.
//
// Divider reads what the ledger, the pods and the PodGroup say; Problem has what nodes have free, and package tree
// solves it. The dry run and the evictor ask for domains and try them; Coscheduling asks where a member that comes
// later has to be. The package places nothing and keeps nothing.
package sets
