package wellknown

import "fmt"

// BadValue says which key holds a value that cannot be used, and in which object.
type BadValue struct { //nolint:errname // it is a finding first; only some callers return it as an error
	// Object that holds it, such as "pod" or "PriorityClass low".
	Object string
	// Kind of the key: "annotation" or "label".
	Kind string
	Key  string
	// Value as found.
	Value string
	// Missing is set if the object lacks the key altogether.
	Missing bool
	// Allowed says what the value may be.
	Allowed string
	// Effect says what follows where it is more than that the value counts as absent.
	Effect string
}

// longestQuoted is how much of a bad value a message repeats: events are cut off at 1 KiB.
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
