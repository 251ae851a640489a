package steps

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"berth.dev/berth/pkg/tree"
)

// Ladder is the minima at which a gang may run that grows by steps: its own, and one for each step.
type Ladder struct {
	Minimum tree.Minimum
	By      Size
}

// unit is what a step adds to: the members of any role, those of one role, or the whole groups within a group.
type unit struct {
	// least is the number at the foot of the ladder, by what a step adds; 0 doubles.
	least, by int
	// role is set for members of a role, within for whole groups.
	role   string
	within *tree.Group
}

// units returns what a step adds to. Where that is nothing, wrong says what is.
func (l Ladder) units() (all []unit, wrong string) {
	root := l.Minimum.Tree
	switch {
	case l.By == "":
		return nil, ""
	case !l.By.Named() && root == nil:
		all = []unit{{least: l.Minimum.Total}}
		all[0].by, _ = number(string(l.By))
		return all, ""
	case !l.By.Named() && len(root.Groups) > 1:
		return nil, "numbers by group, such as " + root.Groups[0].Name + "=2, because the gang has several groups"
	}
	parts := string(l.By)
	if !l.By.Named() {
		parts = root.Groups[0].Name + "=" + parts
	}
	for part := range strings.SplitSeq(parts, ",") {
		name, text, _ := strings.Cut(part, "=")
		u, known := find(l.Minimum.Groups(), name)
		if !known {
			return nil, fmt.Sprintf("roles that have a minimum, or groups that are in no copies; %s is neither", name)
		}
		if u.by, _ = number(text); u.by == 0 && u.least == 0 {
			return nil, fmt.Sprintf("a number, because %s has no minimum to double", name)
		}
		all = append(all, u)
	}
	return all, ""
}

// find finds what a name in a ratio means in a group that starts with its gang in any case.
func find(g *tree.Group, name string) (u unit, known bool) {
	if n, known := g.Roles[name]; known && !counts(g, name) {
		return unit{least: n, role: name}, true
	}
	if counts(g, name) {
		return unit{least: g.Least, within: g}, true
	}
	if g.Copies || g.Least < len(g.Groups) {
		return unit{}, false
	}
	for i := range g.Groups {
		if u, known = find(&g.Groups[i], name); known {
			break
		}
	}
	return u, known
}

// counts reports whether the name is that of a group whose groups need not all be whole.
func counts(g *tree.Group, name string) bool {
	return g.Name == name && len(g.Groups) > 0 && (g.Copies || g.Least < len(g.Groups))
}

// Wrong says what the size should be for a gang with that minimum, nothing if it is right.
func (l Ladder) Wrong() string {
	_, wrong := l.units()
	return wrong
}

// Climbs reports whether the gang grows by steps.
func (l Ladder) Climbs() bool { return l.By != "" && l.Wrong() == "" }

// Reached returns how many steps a gang has taken that has total members, -1 if these are less than its minimum; byRole
// tells how many of them have a role.
//
// There is no smaller last step up to all members that exist: nothing says that no more are being created, and one that
// is taken too soon leaves the gang at a number of members that it did not ask for.
func (l Ladder) Reached(total int, byRole func(role string) int) int {
	if !l.Minimum.MetBy(total, byRole) {
		return -1
	}
	units, _ := l.units()
	steps := make([]int, len(units))
	for i, u := range units {
		have := total
		switch {
		case u.role != "":
			have = byRole(u.role)
		case u.within != nil:
			have = u.within.Whole(byRole)
		}
		if u.by == 0 {
			steps[i] = bits.Len(uint(have/u.least)) - 1
		} else {
			steps[i] = (have - u.least) / u.by
		}
	}
	if len(steps) == 0 {
		return 0
	}
	// Members that count for no unit may be missing where the gang needs more than its roles do.
	at := slices.Min(steps)
	for at > 0 && total < l.At(at).Total {
		at--
	}
	return at
}

// At returns what the gang needs after that number of steps.
func (l Ladder) At(step int) tree.Minimum {
	m := l.Minimum
	units, _ := l.units()
	for _, u := range units {
		more := step * u.by
		if u.by == 0 {
			more = u.least<<step - u.least
		}
		switch {
		case more == 0:
			continue
		case u.within != nil:
			m.Total += members(u.within, u.least+more) - members(u.within, u.least)
			m.Tree = with(m.Tree, func(g *tree.Group) bool { return counts(g, u.within.Name) },
				func(g *tree.Group) { g.Least += more })
			continue
		case u.role != "":
			m.Roles = raised(m.Roles, u.role, more)
			if m.Tree != nil {
				m.Tree = with(m.Tree, func(g *tree.Group) bool { _, here := g.Roles[u.role]; return here },
					func(g *tree.Group) { g.Roles = raised(g.Roles, u.role, more) })
			}
		}
		m.Total += more
	}
	return m
}

// members is the smallest number of members of a group in which that many groups are whole.
func members(g *tree.Group, whole int) int {
	if g.Copies {
		return min(whole, len(g.Groups)) * g.Groups[0].Members()
	}
	of := *g
	of.Least = whole
	return of.Members()
}

// raised returns the roles with more members of one.
func raised(roles map[string]int, role string, more int) map[string]int {
	out := map[string]int{}
	maps.Copy(out, roles)
	out[role] += more
	return out
}

// with returns the group with a change to the first group in it that is the one; the group itself stays as it is.
func with(g *tree.Group, is func(*tree.Group) bool, change func(*tree.Group)) *tree.Group {
	out := *g
	if is(g) {
		change(&out)
		return &out
	}
	if g.Copies {
		return g
	}
	for i := range g.Groups {
		if changed := with(&g.Groups[i], is, change); changed != &g.Groups[i] {
			out.Groups = slices.Clone(g.Groups)
			out.Groups[i] = *changed
			return &out
		}
	}
	return g
}

// Next returns what the gang needs after the next step: its minimum if it has less than that, and one member more where
// there are no steps.
func (l Ladder) Next(total int, byRole func(role string) int) tree.Minimum {
	m := l.At(l.Reached(total, byRole) + 1)
	if l.By == "" && total >= m.Total {
		m.Total = total + 1
	}
	return m
}

// Beyond returns which of the members with these roles are beyond the last step that a gang reaches with them, the last
// ones first: none if it has no steps, or less than its minimum. It has total other members; byRole tells how many of
// these have a role.
func (l Ladder) Beyond(total int, byRole func(role string) int, roles []string) []int {
	if !l.Climbs() {
		return nil
	}
	all := map[string]int{}
	for _, role := range roles {
		all[role]++
	}
	at := l.Reached(total+len(roles), func(role string) int { return byRole(role) + all[role] })
	if at < 0 {
		return nil
	}
	return l.At(at).Without(total, byRole).Spare(roles)
}
