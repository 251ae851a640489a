package runtimes

import (
	"math"
	"slices"
)

// length is a run time on a logarithmic scale: 512 for each doubling of the unit, which is an error of 0.1%.
type length int16

const (
	perDoubling        = 512
	longest     length = 28 * perDoubling
	shortest           = -longest
)

func lengthOf(units float64) length {
	if units <= 0 {
		return shortest
	}
	return length(min(max(math.Round(perDoubling*math.Log2(units)), float64(shortest)), float64(longest)))
}

func (l length) units() float64 { return math.Exp2(float64(l) / perDoubling) }

// run is one run of a pod.
type run struct {
	length length
	// owner is its namespace in a class that spans namespaces, to bound what one of them contributes.
	owner owner
}

// record holds the last runs of a class.
type record struct {
	// runs are in the order in which they ended, sorted are their lengths.
	runs   []run
	sorted []length
	// of is the namespace of the class, 0 if it spans several. used is when it last changed, counted in changes of the
	// book.
	of   owner
	used uint64
}

// add notes one more run and forgets one if there are more than most. In a class that spans namespaces, one
// that has a quarter of the runs displaces its own, unless it is the only one.
func (r *record) add(next run, most int) {
	gone := -1
	if next.owner != 0 {
		own := 0
		for i, old := range r.runs {
			if old.owner == next.owner {
				if own++; own == 1 {
					gone = i
				}
			}
		}
		if own < most/4 || own == len(r.runs) {
			gone = -1
		}
	}
	if gone < 0 && len(r.runs) >= most {
		gone = 0
	}
	if gone >= 0 {
		at, _ := slices.BinarySearch(r.sorted, r.runs[gone].length)
		r.sorted = slices.Delete(r.sorted, at, at+1)
		r.runs = slices.Delete(r.runs, gone, gone+1)
	}
	r.runs = append(r.runs, next)
	at, _ := slices.BinarySearch(r.sorted, next.length)
	r.sorted = slices.Insert(r.sorted, at, next.length)
}

// longer returns the part of the runs that were longer.
func longer(sorted []length, than length) float64 {
	low, high := 0, len(sorted)
	for low < high {
		if middle := (low + high) / 2; sorted[middle] > than {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return float64(len(sorted)-low) / float64(len(sorted))
}
