package eviction

import (
	"fmt"

	"berth.dev/berth/pkg/gang"
)

// useless names a group within a gang that loses members and is left with some, but fewer than it needs.
func (k reckoning) useless(id gang.ID) string {
	g := k.p.Groups[id]
	if g.Minimum.Tree == nil {
		return ""
	}
	for _, within := range g.Minimum.Tree.Groups {
		lost, bound := 0, g.BoundByRole[within.Name]
		for i, v := range k.p.Victims {
			if k.gone[i] && v.Group == id && v.Role == within.Name {
				lost++
			}
		}
		if lost > 0 && lost < bound && g.SettledByRole[within.Name]-lost < within.Roles[within.Name] {
			return fmt.Sprintf("group %s is left with %d of its members %s", id, bound-lost, within.Name)
		}
	}
	return ""
}

// within reports whether the group within a gang of that name has to go as a whole.
func (k reckoning) within(id gang.ID, name string) bool {
	g := k.p.Groups[id]
	if g.Minimum.Tree == nil {
		return false
	}
	for _, within := range g.Minimum.Tree.Groups {
		left := g.SettledByRole[name]
		for i, v := range k.p.Victims {
			if k.gone[i] && v.Group == id && v.Role == name {
				left--
			}
		}
		if within.Name == name && left < within.Roles[name] {
			return true
		}
	}
	return false
}
