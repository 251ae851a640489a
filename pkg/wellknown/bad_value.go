package wellknown

import "fmt"

// BadValue is a label or annotation with a value that cannot be used.
type BadValue struct { //nolint:errname // it is a finding first; only some callers return it as an error
	// Object with the value, such as "pod" or "PriorityClass low".
	Object string
	// Kind of the key: "annotation" or "label".
	Kind string
	Key  string
	// Value as found.
	Value string
	// Missing is set if the object lacks the key altogether.
	Missing bool
	// Allowed describes the allowed values, in a noun phrase.
	Allowed string
	// Effect is what the bad value causes, empty if it counts as absent.
	Effect string
}

// longestQuoted bounds the part of a bad value in a message: events are cut off at 1 KiB.
const longestQuoted = 120

// Error names object, key, value and what is allowed.
func (b *BadValue) Error() string {
	if b.Missing {
		return fmt.Sprintf("%s %s %s is missing: want %s", b.Object, b.Kind, b.Key, b.Allowed)
	}
	value := b.Value
	if len(value) > longestQuoted {
		value = value[:longestQuoted] + "…"
	}
	return fmt.Sprintf("%s %s %s: %q is not %s", b.Object, b.Kind, b.Key, value, b.Allowed)
}
