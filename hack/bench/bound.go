package main

import "math"

// amounts are CPU in milli-cores, memory in MiB and GPU in thousandths.
type amounts [3]float64

// shape is a kind of node.
type shape struct {
	offers amounts
	// dollars an hour.
	dollars float64
}

// fractionalBound returns a lower bound of what nodes cost that hold the load, if pods could be divided at will and a
// part of a node be paid for: the value of the linear program
//
//	minimise Σ dollars·x   with Σ offers·x ≥ load, 0 ≤ x ≤ how many there are
//
// by its dual, the largest Σ λ·load − Σ count·max(0, λ·offers − dollars) over prices λ ≥ 0 of the resources. The dual
// is concave, so that nested ternary searches find its top, and any of its values is a bound.
func fractionalBound(fleet map[shape]int, load amounts) float64 {
	var prices, highest amounts
	for s := range fleet {
		for r := range highest {
			// A resource is worth at most what it costs on the node where it is dearest.
			if s.offers[r] > 0 {
				highest[r] = max(highest[r], s.dollars/s.offers[r])
			}
		}
	}
	dual := func() float64 {
		value := 0.0
		for r := range prices {
			value += prices[r] * load[r]
		}
		for s, count := range fleet {
			gain := -s.dollars
			for r := range prices {
				gain += prices[r] * s.offers[r]
			}
			value -= float64(count) * max(0, gain)
		}
		return value
	}
	var top func(resource int) float64
	top = func(resource int) float64 {
		if resource == len(prices) {
			return dual()
		}
		low, high, best := 0.0, highest[resource], math.Inf(-1)
		const steps = 24 // narrows a price down to a seventeen-thousandth
		for range steps {
			third := (high - low) / 3
			prices[resource] = low + third
			left := top(resource + 1)
			prices[resource] = high - third
			right := top(resource + 1)
			best = max(best, left, right)
			if left < right {
				low += third
			} else {
				high -= third
			}
		}
		return best
	}
	return top(0)
}
