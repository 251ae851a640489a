package eviction

import "slices"

// missing is what is missing of the minimum resources on all nodes together. Less than nothing is missing of what is left
// over. It is nil if none are wanted.
func (s *search) missing() Vector {
	if !lacks(s.wanted) {
		return nil
	}
	missing := slices.Clone(s.wanted)
	for n := range s.Nodes {
		s.takeFree(missing, n, 1)
	}
	return missing
}

// takeFree takes what the node has free off what is missing, so many times.
func (s *search) takeFree(missing Vector, node int, times int64) {
	for r, amount := range s.freed(node) {
		missing[r] -= max(amount, 0) * times
	}
}

// noting makes a change to the unit and notes what that means for what is missing.
func (s *search) noting(missing Vector, unit int, change func()) {
	if missing == nil {
		change()
		return
	}
	for _, part := range s.units[unit].parts {
		s.takeFree(missing, part.node, -1)
	}
	change()
	for _, part := range s.units[unit].parts {
		s.takeFree(missing, part.node, 1)
	}
}

// lacks reports whether something is missing.
func lacks(missing Vector) bool {
	return slices.ContainsFunc(missing, func(amount int64) bool { return amount > 0 })
}

// freeWanted evicts the least important units until the minimum resources are free, and reports whether they are.
func (s *search) freeWanted() bool {
	missing := s.missing()
	if !lacks(missing) {
		return true
	}
	var candidates []candidate
	for u := range s.units {
		value := 0.0
		for k := range s.units[u].parts {
			value += cover(s.units[u].parts[k].frees, missing)
		}
		if value > 0 && u != s.kept {
			candidates = append(candidates, candidate{unit: u, value: value / s.weight(u, 1)})
		}
	}
	s.sortCandidates(candidates)
	for _, c := range candidates {
		if s.noting(missing, c.unit, func() { s.remove(c.unit) }); !lacks(missing) {
			return true
		}
	}
	return false
}
