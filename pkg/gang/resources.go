package gang

import (
	"fmt"
	"strings"
)

// Amount is how much of one resource a group wants to be free before it is tried, and how much is: in a unit of the
// caller's.
type Amount struct {
	Resource     string
	Wanted, Free int64
}

// Lacking returns the amounts of which less is free than wanted.
func Lacking(amounts []Amount) []Amount {
	var short []Amount
	for _, a := range amounts {
		if a.Free < a.Wanted {
			short = append(short, a)
		}
	}
	return short
}

// ExplainLack says in one sentence which resources a group waits for. Text puts an amount of a resource into words.
func ExplainLack(id ID, short []Amount, text func(resource string, amount int64) string) string {
	parts := make([]string, len(short))
	for i, a := range short {
		parts[i] = fmt.Sprintf("%s %s, the cluster has %s free", a.Resource, text(a.Resource, a.Wanted), text(a.Resource, a.Free))
	}
	return fmt.Sprintf("gang %s needs minResources %s", id, strings.Join(parts, "; "))
}
