package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Minimum is how many members a group needs before any of them starts: in all, and of each role that has a minimum of
// its own.
type Minimum struct {
	// Total is the number of members of any role, at least 1.
	Total int
	// Roles holds the number of members by role. Roles without an entry count towards Total only.
	Roles map[string]int
}

// MetBy reports whether total members are enough; byRole tells how many of them have a role.
func (m Minimum) MetBy(total int, byRole func(role string) int) bool {
	if total < m.Total {
		return false
	}
	for role, n := range m.Roles {
		if byRole(role) < n {
			return false
		}
	}
	return true
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
	left.Total = left.Members()
	return left
}

// within is what both ask for.
func (m Minimum) within(o Minimum) Minimum {
	both := Minimum{Total: min(m.Total, o.Total)}
	for role, n := range m.Roles {
		both.ask(role, min(n, o.Roles[role]))
	}
	return both
}

// Members is the smallest number of members that can meet the minimum.
func (m Minimum) Members() int {
	roles := 0
	for _, n := range m.Roles {
		roles += max(n, 0)
	}
	return max(m.Total, roles)
}

// Equal reports whether both ask for the same.
func (m Minimum) Equal(o Minimum) bool { return m.Total == o.Total && maps.Equal(m.Roles, o.Roles) }

// String returns the number in all, with those of the roles in parentheses.
func (m Minimum) String() string {
	if len(m.Roles) == 0 {
		return fmt.Sprint(m.Total)
	}
	parts := make([]string, 0, len(m.Roles))
	for _, role := range m.sorted() {
		parts = append(parts, fmt.Sprintf("%s=%d", role, m.Roles[role]))
	}
	return fmt.Sprintf("%d (%s)", m.Total, strings.Join(parts, ", "))
}

// sorted returns the roles that have a minimum, by name.
func (m Minimum) sorted() []string { return slices.Sorted(maps.Keys(m.Roles)) }
