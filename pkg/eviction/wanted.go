package eviction

import "slices"

// shortage is what is missing of the minimum resources on all nodes together. Less than nothing is missing of what is
// left over.
type shortage struct {
	*state
	missing Vector
}

func newShortage(s *state) shortage {
	h := shortage{state: s}
	if slices.ContainsFunc(s.wanted, func(amount int64) bool { return amount > 0 }) {
		h.missing = slices.Clone(s.wanted)
		for n := range s.Nodes {
			h.take(n, 1)
		}
	}
	return h
}

// take takes what the node has free off what is missing, n times.
func (h *shortage) take(node int, times int64) {
	for r, amount := range h.freed(node) {
		h.missing[r] -= max(amount, 0) * times
	}
}

// after makes a change to the unit, and reports whether something is missing then.
func (h *shortage) after(unit int, change func()) bool {
	if h.missing == nil {
		change()
		return false
	}
	for _, part := range h.units[unit].parts {
		h.take(part.node, -1)
	}
	change()
	for _, part := range h.units[unit].parts {
		h.take(part.node, 1)
	}
	return h.any()
}

func (h *shortage) any() bool {
	return slices.ContainsFunc(h.missing, func(amount int64) bool { return amount > 0 })
}

// freeWanted evicts the least important units until the minimum resources are free, and reports whether they are.
func (s *domain) freeWanted() bool {
	short := newShortage(s.state)
	if !short.any() {
		return true
	}
	var candidates []candidate
	for u := range s.units {
		value := 0.0
		for k := range s.units[u].parts {
			value += cover(s.units[u].parts[k].frees, short.missing)
		}
		if value > 0 && u != s.kept {
			candidates = append(candidates, s.candidate(u, nil, value, 1))
		}
	}
	s.sort(candidates)
	for _, c := range candidates {
		if !short.after(c.unit, func() { s.remove(c.unit) }) {
			return true
		}
	}
	return false
}
