// Package priceview reads what decides on cost: the price that a node states, what it offers and what is left of it,
// how it was bought, whether a pod accepts spot capacity, and the hours in which it may start. The plugin CostOptimized
// and the tools call it. It keeps no state; prices themselves are computed by package price.
package priceview
