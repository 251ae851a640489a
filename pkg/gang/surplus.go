package gang

import "berth.dev/berth/pkg/gang/tree"

// lacking returns the part of the group for which the member has to wait: the group, or one within it that the member
// is in and that has begun, has fewer members than it needs, and the member is not one of those. What comes free is for
// those that are missing, or the gang would run with more of one role and without another. It is nil if the member need
// not wait.
func (g *group) lacking(m *member) *tree.Group {
	need := g.run.needed(g.spec())
	if left := need.Without(g.census.settled(), g.census.settledIn); left.Total > left.Groups().Members() {
		return nil // any member is missing
	}
	of := need.Groups()
	for of.Met(g.census.settledIn) {
		if of = within(of, m.Role); of == nil || !g.begunIn(of) {
			return nil
		}
	}
	if g.asks(of, m.Role) {
		return nil
	}
	return of
}

// asks reports whether another member with the role brings the part of the group nearer to what it needs.
func (g *group) asks(of *tree.Group, role string) bool {
	for of != nil && !of.Met(g.census.settledIn) {
		if g.census.settledIn(role) < of.Roles[role] {
			return true
		}
		of = within(of, role)
	}
	return false
}

// begunIn reports whether members of the part of the group have a node.
func (g *group) begunIn(of *tree.Group) bool {
	for role := range g.census.roles {
		if g.census.settledIn(role) > 0 && of.Has(role) {
			return true
		}
	}
	return false
}

// within returns the part of the group that members with the role are in, nil if none is.
func within(of *tree.Group, role string) *tree.Group {
	for i := range of.Groups {
		if of.Groups[i].Has(role) {
			return &of.Groups[i]
		}
	}
	return nil
}
