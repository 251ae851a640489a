package rig

import (
	"fmt"
	"slices"
)

// Spread is what several runs show of one figure.
type Spread struct {
	Least, Median, Most float64
	runs                int
}

// SpreadOf is the spread of at least one value.
func SpreadOf(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{sorted[0], (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[n-1], n}
}

// Text is the median in a format, with the least and the most in brackets if there were several runs.
func (s Spread) Text(format string) string {
	if s.runs == 1 {
		return fmt.Sprintf(format, s.Median)
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Least, s.Most)
}
