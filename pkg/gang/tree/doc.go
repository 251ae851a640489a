// Package tree places gangs that are trees: groups of groups, each with a minimum of members or of groups, and with a
// domain of the topology that its members share.
//
// Minimum says what a gang needs, and Group what a tree of groups needs; the ledger of gangs asks whether the members
// that exist or are placed are enough. Problem assigns domains and nodes to sets of members by what nodes have free, so
// that all that is needed fits at once. A segment of ranks is such a set, too. The dry run, the evictor and
// reservations pose problems and try the answers.
//
// The package knows numbers and names only. It reads no objects, places nothing, and keeps no state.
package tree
