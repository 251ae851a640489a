package rig

import "math"

// Amounts are CPU in milli-cores, memory in MiB and GPU in thousandths.
type Amounts [3]float64

// Shape is a kind of node.
type Shape struct {
	Offers Amounts
	// Dollars an hour.
	Dollars float64
}

// FractionalBound returns a lower bound of what nodes cost that hold the load, if pods could be divided at will and a
// part of a node be paid for: the value of the linear program
//
//	minimise Σ dollars·x   with Σ offers·x ≥ load, 0 ≤ x ≤ how many there are
//
// by its dual, the largest Σ λ·load − Σ count·max(0, λ·offers − dollars) over prices λ ≥ 0 of the resources. The dual
// is concave, so that nested ternary searches find its top, and any of its values is a bound.
func FractionalBound(fleet map[Shape]int, load Amounts) float64 {
	var prices, highest Amounts
	for s := range fleet {
		for r := range highest {
			// A resource is worth at most what it costs on the node where it is dearest.
			if s.Offers[r] > 0 {
				highest[r] = max(highest[r], s.Dollars/s.Offers[r])
			}
		}
	}
	dual := func() float64 {
		value := 0.0
		for r := range prices {
			value += prices[r] * load[r]
		}
		for s, count := range fleet {
			gain := -s.Dollars
			for r := range prices {
				gain += prices[r] * s.Offers[r]
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
