package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/pkg/plural"
)

// Group is a group of a gang with what it needs before it may start.
type Group struct {
	Name string
	// Roles holds by role how many members of the group are needed.
	Roles map[string]int
	// Groups are the groups within, Least is how many of them have to be whole.
	Groups []Group
	Least  int
	// Copies is set if Groups are copies that need the same.
	Copies bool
	// Required and Preferred are the levels whose domains all members share, and should share, within those of the group
	// around this one; the widest first.
	Required, Preferred []string
	// Alone is set if no other such group may use its domain of the narrowest required level.
	Alone bool
}

// Met reports whether the members are enough; byRole tells how many have a role.
func (g *Group) Met(byRole func(role string) int) bool {
	for role, n := range g.Roles {
		if byRole(role) < n {
			return false
		}
	}
	whole := 0
	for i := 0; i < len(g.Groups) && whole < g.Least; i++ {
		if g.Groups[i].Met(byRole) {
			whole++
		}
	}
	return whole >= g.Least
}

// Without returns what is still needed when there are members; byRole tells how many have a role.
func (g *Group) Without(byRole func(role string) int) *Group {
	left := *g
	left.Roles = make(map[string]int, len(g.Roles))
	for role, n := range g.Roles {
		left.Roles[role] = max(n-byRole(role), 0)
	}
	left.Groups = make([]Group, len(g.Groups))
	for i := range g.Groups {
		left.Groups[i] = *g.Groups[i].Without(byRole)
	}
	return &left
}

// Members is the smallest number of members that can be enough.
func (g *Group) Members() int {
	total := 0
	for _, n := range g.Roles {
		total += n
	}
	within := make([]int, len(g.Groups))
	for i := range g.Groups {
		within[i] = g.Groups[i].Members()
	}
	slices.Sort(within)
	for _, n := range within[:min(g.Least, len(within))] {
		total += n
	}
	return total
}

// Always adds by role what is needed whichever groups start.
func (g *Group) Always(roles map[string]int) {
	for role, n := range g.Roles {
		if n > 0 {
			roles[role] += n
		}
	}
	if g.Least < len(g.Groups) {
		return
	}
	for i := range g.Groups {
		g.Groups[i].Always(roles)
	}
}

const thatItNeeds = " that it needs"

// Short says how many members there are of those of a role or group that are too few, nothing if all are enough; byRole
// tells how many have a role.
func (g *Group) Short(byRole func(role string) int) string {
	for _, role := range slices.Sorted(maps.Keys(g.Roles)) {
		if have, need := byRole(role), g.Roles[role]; have < need {
			return fmt.Sprintf("%d of the %s with role %s"+thatItNeeds, have, plural.Of(need, "member"), role)
		}
	}
	whole, short := 0, ""
	for i := range g.Groups {
		switch s := g.Groups[i].Short(byRole); {
		case s == "":
			whole++
		case short == "":
			short = s
		}
	}
	switch {
	case whole >= g.Least:
		return ""
	case short == "":
		return fmt.Sprintf("%d of the %s"+thatItNeeds, whole, plural.Of(g.Least, "group"))
	case g.Copies && g.Least < len(g.Groups):
		return fmt.Sprintf("%d of the %d %s of group %s"+thatItNeeds+"; the next has %s", whole, g.Least,
			plural.Choose(g.Least, "copy", "copies"), g.Name, strings.TrimSuffix(short, thatItNeeds))
	}
	return short
}

// Holds reports whether a group within has the name.
func (g *Group) Holds(name string) bool {
	return slices.ContainsFunc(g.Groups, func(in Group) bool { return !in.Copies && in.Name == name || in.Holds(name) })
}

// Around returns the outermost group that has the name or a group within of that name; each copy is a group of its own.
func (g *Group) Around(name string) *Group {
	for i := range g.Groups {
		in := &g.Groups[i]
		if !in.Copies && (in.Name == name || in.Holds(name)) {
			return in
		}
		if of := in.Around(name); in.Copies && of != nil {
			return of
		}
	}
	return nil
}

// Equal reports whether both need the same. Either may be nil.
func (g *Group) Equal(o *Group) bool {
	if g == nil || o == nil {
		return g == o
	}
	return g.Name == o.Name && g.Least == o.Least && g.Copies == o.Copies && g.Alone == o.Alone &&
		maps.Equal(g.Roles, o.Roles) &&
		slices.Equal(g.Required, o.Required) && slices.Equal(g.Preferred, o.Preferred) &&
		slices.EqualFunc(g.Groups, o.Groups, func(a, b Group) bool { return a.Equal(&b) })
}

// Level is the narrowest level that the first of the groups with one requires, empty if none does.
func (g *Group) Level() string {
	for i := range g.Groups {
		if level := g.Groups[i].Level(); level != "" {
			return level
		}
	}
	if len(g.Required) == 0 {
		return ""
	}
	return g.Required[len(g.Required)-1]
}

// String says what is needed, copies once: "2 of 4 replica (decode=4, prefill=1), router (1 pod)"; and of groups that
// not all are needed, "pool (1 of a (1 pod), b (1 pod))".
func (g *Group) String() string {
	var parts, groups []string
	for _, role := range slices.Sorted(maps.Keys(g.Roles)) {
		if role == g.Name {
			parts = append(parts, plural.Of(g.Roles[role], "pod"))
			continue
		}
		// Other roles of a group are called after it.
		parts = append(parts, fmt.Sprintf("%s=%d", role[strings.LastIndexByte(role, '/')+1:], g.Roles[role]))
	}
	for i := range g.Groups {
		switch within := &g.Groups[i]; {
		case within.Copies:
			groups = append(groups, fmt.Sprintf("%d of %d %s (%s)", within.Least, len(within.Groups), within.Name,
				within.Groups[0].String()))
		default:
			groups = append(groups, fmt.Sprintf("%s (%s)", within.Name, within.String()))
		}
	}
	if g.Least < len(groups) {
		groups[0] = fmt.Sprintf("%d of %s", g.Least, groups[0])
	}
	return strings.Join(append(parts, groups...), ", ")
}
