package tree

import (
	"fmt"
	"maps"
)

// Minimum is how many members a group needs before any of them starts: in all, and of each role that has a minimum of
// its own.
type Minimum struct {
	// Total is the number of members of any role, at least 1.
	Total int
	// Roles holds the number of members by role. Roles without an entry count towards Total only.
	Roles map[string]int
	// Tree is what the groups within need, nil if there are none. What it always needs is in Roles, too.
	Tree *Group
}

// Groups is what is needed by role and group.
func (m Minimum) Groups() *Group {
	if m.Tree != nil {
		return m.Tree
	}
	return &Group{Roles: m.Roles}
}

// MetBy reports whether total members are enough; byRole tells how many of them have a role.
func (m Minimum) MetBy(total int, byRole func(role string) int) bool {
	return total >= m.Total && m.Groups().Met(byRole)
}

// ask adds what is asked for of a role, if that is anything.
func (m *Minimum) ask(role string, n int) {
	if n > 0 && m.Roles == nil {
		m.Roles = map[string]int{}
	}
	if n > 0 {
		m.Roles[role] = n
	}
}

// Without returns what is still needed when total members are there; byRole tells how many of them have a role.
func (m Minimum) Without(total int, byRole func(role string) int) Minimum {
	left := Minimum{Total: max(m.Total-total, 0)}
	for role, n := range m.Roles {
		left.ask(role, n-byRole(role))
	}
	if m.Tree != nil {
		left.Tree = m.Tree.Without(byRole)
	}
	left.Total = left.Members()
	return left
}

// Within is what both ask for.
func (m Minimum) Within(o Minimum) Minimum {
	both := Minimum{Total: min(m.Total, o.Total)}
	if m.Tree.Equal(o.Tree) {
		both.Tree = m.Tree
	}
	for role, n := range m.Roles {
		both.ask(role, min(n, o.Roles[role]))
	}
	return both
}

// Members is the smallest number of members that can meet the minimum.
func (m Minimum) Members() int { return max(m.Total, m.Groups().Members()) }

// Equal reports whether both ask for the same.
func (m Minimum) Equal(o Minimum) bool {
	return m.Total == o.Total && maps.Equal(m.Roles, o.Roles) && m.Tree.Equal(o.Tree)
}

// String returns the number in all, with those of the roles or groups in parentheses.
func (m Minimum) String() string {
	if groups := m.Groups().String(); groups != "" {
		return fmt.Sprintf("%d (%s)", m.Total, groups)
	}
	return fmt.Sprint(m.Total)
}
