package scenarios_test

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// machine is the clock for the limits of scenarios.
var machine machineClock

// machineClock counts the time that the machine has had for a process: where four times as many threads want to run as
// there are processors, a second counts for a quarter. What the scheduler has to have done within a limit is so the
// same on a busy machine. The zero value is ready for use.
type machineClock struct {
	mu     sync.Mutex
	passed time.Duration
	at     time.Time
	share  float64
}

// sampleEvery is how old the number of threads may be.
const sampleEvery = 20 * time.Millisecond

// now is how much time has passed since the first call.
func (c *machineClock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch now := time.Now(); {
	case c.at.IsZero():
		c.at, c.share = now, machineShare()
	case now.Sub(c.at) >= sampleEvery:
		c.passed += time.Duration(c.share * float64(now.Sub(c.at)))
		c.at, c.share = now, machineShare()
	}
	return c.passed
}

// machineShare is the part of a processor that a thread gets which wants to run, and 1 where the kernel does not say.
func machineShare() float64 {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 1
	}
	return shareOf(stat, runtime.NumCPU())
}

func shareOf(stat []byte, processors int) float64 {
	_, after, _ := bytes.Cut(stat, []byte("\nprocs_running "))
	number, _, _ := bytes.Cut(after, []byte("\n"))
	running, err := strconv.Atoi(string(number))
	if err != nil {
		return 1
	}
	return min(1, float64(processors)/float64(max(running, 1)))
}

func TestTheMachinesTimePassesMoreSlowlyTheMoreThreadsWantToRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stat string
		want float64
	}{
		"fewer than processors":         {"cpu 1 2\nprocs_running 1\nprocs_blocked 9\n", 1},
		"as many as processors":         {"cpu 1 2\nprocs_running 2\nprocs_blocked 9\n", 1},
		"four times as many":            {"cpu 1 2\nprocs_running 8\nprocs_blocked 9\n", 0.25},
		"a kernel that does not say it": {"cpu 1 2\n", 1},
		"no number":                     {"cpu 1 2\nprocs_running many\n", 1},
		"nothing":                       {"", 1},
	} {
		if got := shareOf([]byte(tc.stat), 2); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	var clock machineClock
	began, first := time.Now(), clock.now()
	for clock.now() == first {
		if time.Since(began) > time.Minute {
			t.Fatal("the clock stands still")
		}
		runtime.Gosched()
	}
	if passed, most := clock.now()-first, time.Since(began); passed > most {
		t.Errorf("%s have passed in %s", passed, most)
	}
}
