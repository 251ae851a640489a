package steps

import (
	"fmt"
	"strconv"
)

// Size is how large the steps of a gang are: that number of members, or Double. With the zero value a gang has no
// steps, and any number of members from its minimum on will do.
type Size int

// Double makes each step as large as what runs already: the gang runs with its minimum, or twice, four times or eight
// times as many members.
const Double Size = -1

// double is how users write Double.
const double = "double"

// Largest is the largest step that is believed.
const Largest = 100000

// Allowed says what Parse reads.
var Allowed = fmt.Sprintf("%q or a whole number from 2 to %d", double, Largest)

// Parse reads a size as users write it.
func Parse(text string) (Size, bool) {
	if text == double {
		return Double, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return Size(n), err == nil && n >= 2 && n <= Largest
}

// String writes a size as users do.
func (s Size) String() string {
	if s == Double {
		return double
	}
	return strconv.Itoa(int(s))
}

// Reached returns the last step that have members come to, of a gang with that minimum, at least 1. It is have where
// there are no steps and for fewer members than the minimum.
//
// There is no smaller last step up to all members that exist: nothing says that no more are being created, and one that
// is taken too soon leaves the gang at a number of members that it did not ask for.
func (s Size) Reached(minimum, have int) int {
	switch {
	case have < minimum || s == 0:
		return have
	case s == Double:
		at := minimum
		for at <= have/2 {
			at *= 2
		}
		return at
	}
	return have - (have-minimum)%int(s)
}

// Next returns the step that follows on have members: the minimum for fewer members than that, and one member more
// where there are no steps.
func (s Size) Next(minimum, have int) int {
	switch at := s.Reached(minimum, have); {
	case have < minimum:
		return minimum
	case s == 0:
		return have + 1
	case s == Double:
		return 2 * at
	default:
		return at + int(s)
	}
}
