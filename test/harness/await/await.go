// Package await is how tests wait for what other goroutines and processes do: until it is done, and no longer than is
// reasonable on a machine that is busy with other things.
package await

import (
	"testing"
	"time"
)

// within is longer than anything takes that is tested, on two cores that compile and test beside it: a test that fails
// may take long, one that passes does not.
const within = 2 * time.Minute

// every is how often a condition is looked at.
const every = 5 * time.Millisecond

// Until waits until a condition holds.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline, tick := time.NewTimer(within), time.NewTicker(every)
	defer deadline.Stop()
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			// This goroutine may have had no processor either.
			if !holds() {
				tb.Fatalf("waiting for %s: not within %s", what, within)
			}
			return
		case <-tick.C:
		}
	}
}

// Next waits for what comes out of a channel. A channel that is closed gives the zero value.
func Next[T any](tb testing.TB, from <-chan T, what string) T {
	tb.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	select {
	case got := <-from:
		return got
	case <-deadline.C:
		tb.Fatalf("waiting for %s: not within %s", what, within)
		panic("unreachable")
	}
}
