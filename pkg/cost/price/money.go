package price

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"regexp"
	"strings"
)

// MicroDollars is an amount of money, in rates an amount an hour: one is a millionth of a dollar. Amounts are never
// negative where this package returns them.
type MicroDollars int64

const (
	// Dollar is one dollar.
	Dollar MicroDollars = 1_000_000
	// MaxPrice is the largest price that Parse accepts: a million dollars an hour. It leaves room to add up nine million
	// such nodes.
	MaxPrice = 1_000_000 * Dollar

	maxMicroDollars MicroDollars = math.MaxInt64
)

// Allowed says what Parse accepts, for messages to users.
const Allowed = "a decimal number of dollars from 0 to 1000000, without sign, currency or exponent, such as 3.06"

var (
	errNotDecimal = errors.New("not a decimal number")
	errTooLarge   = errors.New("more than 1000000 dollars")
)

// decimal is what Parse accepts, but for the size of the amount.
var decimal = regexp.MustCompile(`^[0-9]*\.?[0-9]+$`)

// Parse reads decimal dollars such as "3.06" or ".35". Digits beyond the micro-dollar are rounded half up. It refuses
// signs, currency marks, exponents, separators, blanks and amounts above MaxPrice.
func Parse(s string) (MicroDollars, error) {
	if !decimal.MatchString(s) {
		return 0, fmt.Errorf("parsing price %q: %w", s, errNotDecimal)
	}
	amount, _ := new(big.Rat).SetString(s)
	// To round half up is to add a half and to round down.
	amount.Add(amount.Mul(amount, big.NewRat(int64(Dollar), 1)), big.NewRat(1, 2))
	micro := new(big.Int).Quo(amount.Num(), amount.Denom())
	if micro.Cmp(big.NewInt(int64(MaxPrice))) > 0 {
		return 0, fmt.Errorf("parsing price %q: %w", s, errTooLarge)
	}
	return MicroDollars(micro.Int64()), nil
}

// Dollars returns the amount as a float, for metrics and charts only.
func (m MicroDollars) Dollars() float64 { return float64(m) / float64(Dollar) }

// String writes dollars with at least two and at most six decimals: "$3.06", "$0.000004".
func (m MicroDollars) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	s := fmt.Sprintf("%d.%06d", m/Dollar, m%Dollar)
	return sign + "$" + s[:len(s)-4] + strings.TrimRight(s[len(s)-4:], "0")
}

// Plus returns m + n, at most the largest amount.
func (m MicroDollars) Plus(n MicroDollars) MicroDollars {
	if n > 0 && m > maxMicroDollars-n {
		return maxMicroDollars
	}
	return m + n
}

// Minus returns m − n, at least nothing.
func (m MicroDollars) Minus(n MicroDollars) MicroDollars {
	if n >= m {
		return 0
	}
	return m - n
}

// Scale returns m·num/den rounded down, at most the largest amount. It returns nothing when m or num is not positive,
// and the largest amount when only den is not.
func (m MicroDollars) Scale(num, den int64) MicroDollars {
	if m <= 0 || num <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(m), uint64(num))
	if den <= 0 || high >= uint64(den) {
		return maxMicroDollars
	}
	quotient, _ := bits.Div64(high, low, uint64(den))
	return MicroDollars(min(quotient, math.MaxInt64))
}

// FromDollars takes over an amount that a metric reports as a float. It refuses what Parse would refuse: negative
// amounts, amounts above MaxPrice, and what is not a number.
func FromDollars(dollars float64) (MicroDollars, error) {
	switch {
	case math.IsNaN(dollars), dollars < 0:
		return 0, fmt.Errorf("converting price %v: %w", dollars, errNotDecimal)
	case dollars > float64(MaxPrice/Dollar):
		return 0, fmt.Errorf("converting price %v: %w", dollars, errTooLarge)
	}
	return MicroDollars(math.Round(dollars * float64(Dollar))), nil
}
