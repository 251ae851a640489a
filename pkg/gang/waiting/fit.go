package waiting

import "berth.dev/berth/pkg/capacity"

// MayFit reports whether the gang may fit into what is free or, with empty set, into the cluster if no pod ran in it.
func (l *List) MayFit(g *Gang, empty bool) bool {
	return g.Fits(func(needs []capacity.Need) int {
		return l.Capacity.Best(needs, g.Levels.Required, nil, empty)
	})
}

// Fits reports whether the minimum of the gang fits, as a whole and of each role. best returns how many of the needed
// pods fit.
func (g *Gang) Fits(best func([]capacity.Need) int) bool {
	if best(g.Shapes) < g.Need.Total {
		return false
	}
	for role, need := range g.Need.Roles {
		var shapes []capacity.Need
		for i, c := range g.Classes {
			if c.Role == role {
				shapes = append(shapes, g.Shapes[i])
			}
		}
		if best(shapes) < need {
			return false
		}
	}
	return true
}
