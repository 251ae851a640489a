package tree

import "strings"

// Tolerates reports whether what is left is of use when members are lost: the minimum is met without them, and each
// group within that loses some still has what it needs, or loses all. Lost and bound count members by role before the
// loss, those without a role as "": those that are lost, and those that hold a node. Total and settled count those that
// are placed, in all and by role.
func (m Minimum) Tolerates(total int, lost, bound map[string]int, settled func(role string) int) bool {
	for _, n := range lost {
		total -= n
	}
	after := func(role string) int { return settled(role) - lost[role] }
	return m.MetBy(total, after) && (m.Tree == nil || m.Tree.tolerates(lost, bound, settled))
}

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

// tolerates reports whether each group within has what it needs after the loss, or holds nothing any more.
func (g *Group) tolerates(lost, bound map[string]int, settled func(role string) int) bool {
	after := func(role string) int { return settled(role) - lost[role] }
	for i := range g.Groups {
		within := &g.Groups[i]
		if !within.hasAny(lost, nil) {
			continue
		}
		if !within.Met(after) && within.hasAny(bound, lost) || !within.tolerates(lost, bound, settled) {
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

// Optional calls yield with each group within, at any depth, without which the one around it may have what it needs.
func (g *Group) Optional(yield func(*Group)) {
	for i := range g.Groups {
		if g.Groups[i].Optional(yield); g.Least < len(g.Groups) {
			yield(&g.Groups[i])
		}
	}
}
