// Package price knows money: what an hour of a node costs, how that price divides over the node's resources, what it
// costs to put a pod on a node, and when windows of cheap hours open.
//
// Amounts are whole micro-dollars an hour, so that sums are exact and a tenth of a cent a day is still seen. Arithmetic
// saturates instead of wrapping round: a cost that is too large to write down is still the largest.
//
// CostOptimized and the tools call it with what priceview has read. It never reads an object of Kubernetes or the
// clock.
package price
