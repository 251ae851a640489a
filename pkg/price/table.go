package price

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Adjustment changes a price by a share or by an amount, as the priceAdjustment of a Karpenter NodeOverlay does.
// The zero value changes nothing.
type Adjustment struct {
	permyriad int64 // relative: hundredths of a percent, −10000 or more
	amount    MicroDollars
}

// AllowedAdjustment says what ParseAdjustment accepts, for messages to users.
const AllowedAdjustment = `a sign and a number of percent with at most two decimals ("-15%", from -100% to +1000%) or of dollars ("+0.05")`

const maxAdjustmentPermyriad = 10 * 100_00

var errNotAdjustment = errors.New("not a signed percentage or amount")

// ParseAdjustment reads "-15%", "+7.5%", "-0.35" or "+1".
func ParseAdjustment(s string) (Adjustment, error) {
	if len(s) < 2 || (s[0] != '+' && s[0] != '-') {
		return Adjustment{}, fmt.Errorf("parsing price adjustment %q: %w", s, errNotAdjustment)
	}
	digits, relative := strings.CutSuffix(s[1:], "%")
	// A percentage is read as if it were dollars: both are decimals with an exact number of digits behind the point.
	value, err := Parse(digits)
	if err != nil {
		return Adjustment{}, fmt.Errorf("parsing price adjustment %q: %w", s, errNotAdjustment)
	}
	negative := s[0] == '-'
	if !relative {
		if negative {
			value = -value
		}
		return Adjustment{amount: value}, nil
	}
	const hundredth = Dollar / 100
	permyriad := int64(value / hundredth)
	switch {
	case value%hundredth != 0:
		return Adjustment{}, fmt.Errorf("parsing price adjustment %q: more than two decimals", s)
	case negative && permyriad > 100_00, permyriad > maxAdjustmentPermyriad:
		return Adjustment{}, fmt.Errorf("parsing price adjustment %q: out of range", s)
	case negative:
		permyriad = -permyriad
	}
	return Adjustment{permyriad: permyriad}, nil
}

// Apply returns the price after the adjustment, at least nothing.
func (a Adjustment) Apply(p MicroDollars) MicroDollars {
	adjusted := p.Scale(100_00+a.permyriad, 100_00)
	if a.amount < 0 {
		return adjusted.Minus(-a.amount)
	}
	return adjusted.Plus(a.amount)
}

// Rule states or adjusts the price of the nodes that it matches.
type Rule struct {
	// Matches says from a node's labels whether the rule is about it.
	Matches func(labels map[string]string) bool
	// Price is the price an hour. Nil makes the rule an adjustment.
	Price *MicroDollars
	// Adjustment changes a price that is not stated on the node itself.
	Adjustment Adjustment
	// Weight decides between rules: of those that match a node and state a price the heaviest counts, and of those that
	// adjust it the heaviest. Equal weights fall to the earlier rule.
	Weight int32
}

// Table finds the price of a node by its labels. It does not change once made and may be read concurrently.
type Table struct {
	prices, adjustments []Rule
}

// NewTable orders the rules by weight.
func NewTable(rules []Rule) *Table {
	t := &Table{}
	for _, r := range rules {
		if r.Price != nil {
			t.prices = append(t.prices, r)
		} else {
			t.adjustments = append(t.adjustments, r)
		}
	}
	byWeight := func(a, b Rule) int { return cmp.Compare(b.Weight, a.Weight) }
	slices.SortStableFunc(t.prices, byWeight)
	slices.SortStableFunc(t.adjustments, byWeight)
	return t
}

// Price returns the price that the table states for a node with these labels, before any adjustment.
func (t *Table) Price(labels map[string]string) (MicroDollars, bool) {
	for _, r := range t.prices {
		if r.Matches(labels) {
			return *r.Price, true
		}
	}
	return 0, false
}

// Adjust returns a node's price p after the adjustment that the table has for its labels, if any.
func (t *Table) Adjust(p MicroDollars, labels map[string]string) MicroDollars {
	for _, r := range t.adjustments {
		if r.Matches(labels) {
			return r.Adjustment.Apply(p)
		}
	}
	return p
}
