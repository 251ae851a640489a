package price

import (
	"cmp"
	"slices"
)

// Rule states the price of the nodes that it matches.
type Rule struct {
	// Matches reports from a node's labels whether the rule applies to it.
	Matches func(labels map[string]string) bool
	// Price is the price an hour.
	Price MicroDollars
	// Weight decides between rules that match a node: the highest counts, of equal weights the earlier rule.
	Weight int32
}

// Table is the rules in the order in which they count. It does not change once made and may be read concurrently.
type Table []Rule

// NewTable orders the rules by weight.
func NewTable(rules []Rule) Table {
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(b.Weight, a.Weight) })
	return rules
}

// Price returns the price that the table states for a node with these labels.
func (t Table) Price(labels map[string]string) (MicroDollars, bool) {
	for _, r := range t {
		if r.Matches(labels) {
			return r.Price, true
		}
	}
	return 0, false
}
