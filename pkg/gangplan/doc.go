// Package gangplan places the members of a gang one after the other, and says what is lacking if too few of them fit.
//
// Build tries orders of the members on boards, each a dry run on the cluster, until enough members have a node.
// Shortfall words a result that is not enough: how much of the gang fits, and what keeps the rest off the nodes. Amount
// does so for what a gang wants to be free before it is tried.
//
// The dry run and the list of what waits call it; the ledger of gangs takes the plan. The package knows no Kubernetes: a board
// answers where a member goes, and nodes are names.
package gangplan
