// Package plugins_test tests what plugins do in a scheduler, on an API in memory: one binary is linked for all of them.
package plugins_test

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) {
	// The first simulation of a process prepares it for whole schedulers in virtual time, which must not be done in a
	// bubble.
	if err := simulation.Virtual(time.Now(), func() error { return nil }); err != nil {
		panic(err)
	}
	leak.Main(m)
}

const second, minute, hour = time.Second, time.Minute, time.Hour

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

// processorTime is what this process has used since it was called: unlike the time on a clock it does not depend on
// who else uses the machine.
func processorTime(b *testing.B) (used func() time.Duration) {
	b.Helper()
	now := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := now()
	return func() time.Duration { return now() - before }
}
