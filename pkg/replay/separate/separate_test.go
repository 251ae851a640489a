package separate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/pkg/command"
	"berth.dev/berth/pkg/replay/replayed"
)

// asReplay makes the test binary behave as the process of a replay. Its first argument says how it goes, the second of
// how many pods it is.
const asReplay = "BERTH_TEST_AS_REPLAY"

func TestMain(m *testing.M) {
	if os.Getenv(asReplay) == "" {
		os.Setenv(asReplay, "1") //nolint:errcheck // a test of it would fail
		os.Exit(m.Run())
	}
	pods, _ := strconv.Atoi(os.Args[2])
	switch os.Args[1] {
	case "works":
		_ = Finish(os.Stdout, &replayed.Result{Pods: pods, Timing: replayed.Timing{Cycles: 2 * pods},
			Starts: map[string]float64{"j": 1}, Stays: make([]replayed.Stay, pods)})
	case "fails":
		fmt.Fprintln(os.Stderr, "berth: reading: no such file")
		os.Exit(2)
	case "dies":
		fmt.Fprintln(os.Stderr, "panic: no")
		process, _ := os.FindProcess(os.Getpid())
		_ = process.Kill()
		<-time.After(time.Hour) // it is killed before
	case "says nothing":
	case "hangs":
		_, _ = fmt.Fprintln(os.Stdout, `{"Offered":1,"Total":4}`)
		<-time.After(time.Hour) // it is killed before
	}
}

func newPool(t *testing.T, atOnce int) *Pool {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Pool{Executable: executable, AtOnce: atOnce, Memory: 1 << 30, Progress: &replayed.Progress{}}
}

func TestResultsComeInTheOrderOfTheArguments(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	results, err := pool.Run(t.Context(), [][]string{{"works", "1"}, {"works", "20"}, {"works", "3"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%d pods in %d cycles, %d stays and %d starts", r.Pods, r.Timing.Cycles, len(r.Stays),
			len(r.Starts)))
	}
	if want := "1 pods in 2 cycles, 1 stays and 1 starts, 20 pods in 40 cycles, 20 stays and 1 starts, 3 pods in 6 " +
		"cycles, 3 stays and 1 starts"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if offered, total := pool.Progress.Read(); offered != 24 || total != 60 {
		t.Errorf("%d of %d pods, want 24 of three times the most, 60", offered, total)
	}
}

func TestTheFirstErrorEndsAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		how    string
		status int
		want   string
	}{
		"one that fails has its status and its words": {"fails", 2, "reading: no such file"},
		"one that is killed has none":                 {"dies", 1, "running a replay: signal: killed"},
		"one that says nothing":                       {"says nothing", 1, "reading the result of a replay: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The others would hang forever.
			_, err := newPool(t, 2).Run(t.Context(), [][]string{{"hangs", "1"}, {test.how, "1"}, {"hangs", "1"}})
			if err == nil || err.Error() != test.want || command.Status(err) != test.status {
				t.Errorf("error %v with status %d, want %q with %d", err, command.Status(err), test.want, test.status)
			}
		})
	}
}

func TestAnInterruptionEndsAll(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	pool := newPool(t, 2)
	go func() {
		// Both run: each has said how far it is.
		for offered := int64(0); offered < 2; offered, _ = pool.Progress.Read() {
			runtime.Gosched()
		}
		cancel()
	}()
	if _, err := pool.Run(ctx, [][]string{{"hangs", "1"}, {"hangs", "1"}, {"hangs", "1"}}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
