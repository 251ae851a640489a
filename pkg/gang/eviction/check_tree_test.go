package eviction

import (
	"fmt"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
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

// treeFits reports whether all sets that are needed have room after the evictions.
func (k reckoning) treeFits() bool {
	p := tree.Problem{Sets: k.p.Tree.Sets, Levels: k.p.Tree.Levels, Nodes: make([]tree.Node, len(k.p.Nodes))}
	for _, c := range k.p.Classes {
		p.Asks = append(p.Asks, c.Demand)
	}
	for n := range k.p.Nodes {
		p.Nodes[n].Free = k.free(n)
		for _, c := range k.p.Classes {
			slots := c.Count
			if !c.on(n) {
				slots = 0
			}
			p.Nodes[n].Slots = append(p.Nodes[n].Slots, slots)
		}
	}
	return p.Least() != nil
}
