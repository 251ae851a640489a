// Package policy holds the rules of placement policies in a form that scheduling cycles can ask.
//
// A Set is made of all policies at once, when they change. What a pod has to do with it is worked out once for the pod,
// as a Demand, and what a node has to do with it once for the node, as Marks; a cycle only compares the two. Nothing
// changes in a Set, so that cycles, hints and informers' handlers share one without locks. A Ledger counts licenses.
//
// PlacementPolicy calls it. It watches nothing and writes no object.
package policy
