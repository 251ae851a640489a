// Package tree knows gangs that are trees: groups of groups, each with a least number of members or of groups, and with
// a domain of the topology that its members share.
//
// Minimum is what any gang needs, and Group what such a tree does; the ledger of gangs asks whether what exists, or
// what is placed, is enough.
// Problem gives sets of members domains and nodes by an account of what nodes have free, so that all that is needed
// fits at once; a segment of ranks is such a set, too. The dry run poses the problem and tries what comes of it.
//
// The package knows numbers and names only. It reads no objects, places nothing, and keeps no state.
package tree
