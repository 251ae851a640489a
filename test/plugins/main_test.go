// Package plugins_test tests what plugins do in a scheduler, on an API in memory: one binary is linked for all of them.
package plugins_test

import (
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// bubble runs a test in virtual time, beside others.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// pass lets virtual time pass, and all that is due be done.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
	synctest.Wait()
}
