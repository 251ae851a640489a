// Package policy holds the rules of placement policies in a form that scheduling cycles can ask.
//
// A Set is made of all policies whenever they change. It is immutable. The rules that concern a pod are computed once
// for the pod, as a Demand, and the node sets that a node is in once for the node, as Marks; a cycle only compares the
// two. A Ledger counts licenses.
//
// PlacementPolicy calls it. It watches nothing and writes no object.
package policy
