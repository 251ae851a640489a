package showback

import "math/bits"

// wide is a sum of products of two int64 that are not negative: a million dollars an hour for a month of nanoseconds is
// beyond 64 bits.
type wide struct{ hi, lo uint64 }

func product(a, b int64) wide {
	if a <= 0 || b <= 0 {
		return wide{}
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return wide{hi, lo}
}

func (w wide) plus(v wide) wide {
	lo, carry := bits.Add64(w.lo, v.lo, 0)
	hi, _ := bits.Add64(w.hi, v.hi, carry)
	return wide{hi, lo}
}

// over divides, and returns the largest number where the quotient has no room.
func (w wide) over(unit uint64) (quotient int64, remainder uint64) {
	if w.hi >= unit>>1 {
		return 1<<63 - 1, 0
	}
	q, r := bits.Div64(w.hi, w.lo, unit)
	return int64(q), r //nolint:gosec // below 2⁶³ by the comparison above
}
