package nodeagent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
)

func TestLinksThatCannotBeReadAreAskedForLessAndLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := twoGPUs()
		w.topology = errors.New("no matrix")
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx := klog.NewContext(t.Context(), logger)
		logged := func() string { return logger.GetSink().(ktesting.Underlier).GetBuffer().String() }
		s := newSurvey(w)
		minutes := func(n int) (pairs []nvidiasmi.Pair) {
			t.Helper()
			for range n {
				h, err := s.read(ctx)
				if err != nil {
					t.Fatal(err)
				}
				pairs = h.pairs
				time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
			}
			return pairs
		}
		if minutes(3 * 60); w.topoReads < 5 || w.topoReads > 10 {
			t.Errorf("the links were asked for %d times in three hours, want 5 to 10", w.topoReads)
		}
		if n := strings.Count(logged(), "no matrix"); n != 1 {
			t.Errorf("the error was logged %d times, want once:\n%s", n, logged())
		}
		w.topology = errors.New("another trouble")
		minutes(61)
		if n := strings.Count(logged(), "another trouble"); n != 1 {
			t.Errorf("another error was logged %d times, want once:\n%s", n, logged())
		}
		w.topology = nil
		if pairs := minutes(61); len(pairs) != 1 || !strings.Contains(logged(), "Reading again") {
			t.Errorf("pairs %v after the trouble was over; log:\n%s", pairs, logged())
		}
		asked := w.topoReads
		w.gpus, w.topology = w.gpus[:1], errors.New("a third trouble")
		minutes(1)
		w.gpus = twoGPUs().gpus
		w.gpus[0].UUID = slice
		if pairs := minutes(1); pairs != nil || w.topoReads != asked+1 {
			t.Errorf("pairs %v after %d more readings, want none after one: these are other GPUs", pairs, w.topoReads-asked)
		}
	})
}

func TestGaugesAreTakenBackWhenNothingIsKnown(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"no driver": nvidiasmi.ErrAbsent,
		"values that are stale": errors.New("down")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := twoGPUs()
				w.state.Held[0].ID = "GPU-of-another-machine"
				a := run(t, w)
				time.Sleep(10 * time.Second) //nolint:forbidigo // the bubble's clock
				synctest.Wait()
				if n, strange := testutil.CollectAndCount(a.metrics.gpus), testutil.ToFloat64(a.metrics.strange); n != 3 ||
					strange != 1 {
					t.Fatalf("%d states of GPUs and %v strange devices, want 3 and 1", n, strange)
				}
				w.mu.Lock()
				w.machine = failure
				w.mu.Unlock()
				time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
				synctest.Wait()
				if n, strange := testutil.CollectAndCount(a.metrics.gpus), testutil.ToFloat64(a.metrics.strange); n != 0 ||
					strange != 0 {
					t.Errorf("%d states of GPUs and %v strange devices, want none", n, strange)
				}
			})
		})
	}
}
