// Package spelling finds the known name that a misspelled one was meant to be.
package spelling

import (
	"slices"
	"strings"
)

// Closest is the known name that was most likely meant, empty if none is near: a few letters away, or else the only one
// that begins with the name or has it after a prefix.
func Closest[T any](name string, known map[string]T) string {
	best, least := "", 3
	longer := []string{}
	for candidate := range known {
		n := distance(strings.ToLower(name), strings.ToLower(candidate))
		if n < least && 2*n < len(name) || n == least && best != "" && candidate < best {
			best, least = candidate, n
		}
		if strings.HasPrefix(candidate, name) || strings.HasSuffix(candidate, "/"+name) {
			longer = append(longer, candidate)
		}
	}
	if best == "" && len(longer) == 1 {
		return longer[0]
	}
	return best
}

// NoLabel is the message about the first key that no node has as a label, with the one that was likely meant; empty if
// there is no such key. none is the subject, such as "no node".
func NoLabel(none string, keys []string, labels map[string]string) string {
	for _, key := range keys {
		if _, known := labels[key]; !known {
			message := none + " has the label " + key
			if like := Closest(key, labels); like != "" {
				message += "; did you mean " + like + "?"
			}
			return message
		}
	}
	return ""
}

// distance is how many letters have to be added, left out, changed or swapped with their neighbor to get from a to b.
func distance(a, b string) int {
	before, previous := []int(nil), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := previous[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = slices.Min([]int{previous[j] + 1, row[j-1] + 1, change})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}
