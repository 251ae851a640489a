// Package require ends a test that cannot go on.
package require

// TB is what a test and a property of rapid have in common.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test if there is an error.
func NoError(tb TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
