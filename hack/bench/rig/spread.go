package rig

import (
	"fmt"
	"iter"
	"slices"
)

// Spread is what several runs show of one figure.
type Spread struct {
	Least, Median, Most float64
}

// SpreadOf is the spread of at least one value.
func SpreadOf(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{sorted[0], (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[n-1]}
}

// cellOf is the median of values in a format, with the least and the most in brackets if there are several; a dash of
// none.
func cellOf(format string, values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	s := SpreadOf(values)
	if len(values) == 1 {
		return fmt.Sprintf(format, s.Median)
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Least, s.Most)
}

// InTurn yields each contender in each repeat, 1 and up. Each repeat begins with another contender, so that none is
// always the first.
func InTurn[T any](contenders []T, repeats int) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for repeat := range repeats {
			for i := range contenders {
				if !yield(repeat+1, contenders[(i+repeat)%len(contenders)]) {
					return
				}
			}
		}
	}
}
