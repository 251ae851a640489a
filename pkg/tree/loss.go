package tree

import "strings"

// Has reports whether members with the role are in the group or in one within.
func (g *Group) Has(role string) bool {
	if _, needed := g.Roles[role]; needed || role == g.Name || strings.HasPrefix(role, g.Name+"/") {
		return true
	}
	for i := range g.Groups {
		if g.Groups[i].Has(role) {
			return true
		}
	}
	return false
}

// Tolerates reports whether what is left of each group within is of use when members are lost: it has what it needs, or
// holds nothing any more. Lost, settled and bound count members by role before the loss: those that are lost, those that
// count, and those that hold a node.
func (g *Group) Tolerates(lost, bound map[string]int, settled func(role string) int) bool {
	after := func(role string) int { return settled(role) - lost[role] }
	for i := range g.Groups {
		within := &g.Groups[i]
		if !within.hasAny(lost, nil) {
			continue
		}
		if !within.Met(after) && within.hasAny(bound, lost) || !within.Tolerates(lost, bound, settled) {
			return false
		}
	}
	return true
}

// hasAny reports whether the group has one of the members, which are less those without.
func (g *Group) hasAny(members, without map[string]int) bool {
	for role, n := range members {
		if n > without[role] && g.Has(role) {
			return true
		}
	}
	return false
}

// Sparable calls yield with each group within, at any depth, without which the one around it may have what it needs.
func (g *Group) Sparable(yield func(*Group)) {
	for i := range g.Groups {
		if g.Groups[i].Sparable(yield); g.Least < len(g.Groups) {
			yield(&g.Groups[i])
		}
	}
}
