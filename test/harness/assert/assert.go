// Package assert compares what a test got with what it wants. A test goes on where they differ.
package assert

import (
	"strings"

	"github.com/google/go-cmp/cmp"
)

// TB is what a test and a property of rapid have in common.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal fails the test, and shows the difference, where a value is not as it should be. What says which value it is.
func Equal(tb TB, what string, want, got any, options ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", strings.TrimSpace(what), diff)
	}
}

// Contains fails the test for each of the parts that is missing in a text.
func Contains(tb TB, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("%q is missing in\n%s", part, text)
		}
	}
}
