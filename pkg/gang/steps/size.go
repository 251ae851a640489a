package steps

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Size is how large the steps of a gang are, as Parse writes it: a number, Double, or a ratio such as
// "decode=4,prefill=1". With the zero value a gang has no steps, and any number of members from its minimum on will do.
type Size string

// Double makes each step as large as what runs already: the gang runs with its minimum, or twice, four times or eight
// times as many members.
const Double Size = "double"

// Largest is the largest step that is believed, mostParts bounds the names of a ratio.
const (
	Largest   = 100000
	mostParts = 32
)

// Allowed says what Parse reads, AllowedPlain without ratios.
var (
	AllowedPlain = fmt.Sprintf("%q or a whole number from 2 to %d", Double, Largest)
	Allowed      = AllowedPlain + ", or such numbers by role or group, as in decode=4,prefill=1"
)

// label is what a role or a group may be called; a role within a group follows the group and a slash.
const label = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`

var partName = regexp.MustCompile(`^` + label + `(/` + label + `)?$`)

// Parse reads a size as users write it.
func Parse(text string) (Size, bool) {
	if Size(text) == Double {
		return Double, true
	}
	if !strings.Contains(text, "=") {
		n, ok := number(text)
		return Size(strconv.Itoa(n)), ok && n >= 2
	}
	var parts, names []string
	for part := range strings.SplitSeq(text, ",") {
		name, by, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		n, ok := number(strings.TrimSpace(by))
		if !ok || n < 1 || len(parts) == mostParts || !partName.MatchString(name) || slices.Contains(names, name) {
			return "", false
		}
		names, parts = append(names, name), append(parts, name+"="+strconv.Itoa(n))
	}
	return Size(strings.Join(parts, ",")), true
}

func number(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n <= Largest
}

// Named reports whether the size is a ratio: numbers by role or group.
func (s Size) Named() bool { return strings.Contains(string(s), "=") }

// Map returns the size with other names of roles and groups.
func (s Size) Map(name func(string) string) Size {
	if !s.Named() {
		return s
	}
	parts := strings.Split(string(s), ",")
	for i, part := range parts {
		of, by, _ := strings.Cut(part, "=")
		parts[i] = name(of) + "=" + by
	}
	return Size(strings.Join(parts, ","))
}

// Compare orders sizes, so that members that disagree have one: numbers by how large they are, after Double and before
// ratios.
func (s Size) Compare(o Size) int {
	rank := func(s Size) int {
		n, _ := number(string(s))
		if s.Named() {
			n = Largest + 1
		}
		return n
	}
	if by := rank(s) - rank(o); by != 0 {
		return by
	}
	return strings.Compare(string(s), string(o))
}
