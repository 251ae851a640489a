// Package priceview reads what decides on cost: the price that a node states, what the node offers and what is left of
// it, how it was bought, whether a pod accepts spot capacity, and the hours in which the pod may start.
//
// The plugin CostOptimized and the tools call it. It keeps no state and writes no object, and it never computes a
// price: package price does.
package priceview
