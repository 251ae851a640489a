package price

// Sources are where the price of a node comes from. In order of precedence: what the node states, the table, what
// metrics tell and, where they may estimate, the default rates.
type Sources struct {
	Table Table
	Rates Rates
	// Estimates is set where the rates give a price to nodes without any other.
	Estimates bool
}

// Given returns the price that is set for a node: on the node, if it states one, or in the table.
func (s *Sources) Given(labels map[string]string, stated MicroDollars, states bool) (MicroDollars, bool) {
	if states {
		return stated, true
	}
	return s.Table.Price(labels)
}

// Found returns the price of a node for which none is given: what metrics tell, 0 if they tell nothing, or what the
// rates make of the capacity.
func (s *Sources) Found(metered MicroDollars, c Capacity) (MicroDollars, bool) {
	switch {
	case metered > 0:
		return metered, true
	case s.Estimates:
		return s.Rates.Price(c), true
	default:
		return 0, false
	}
}
