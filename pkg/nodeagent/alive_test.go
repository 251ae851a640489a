package nodeagent

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
	"berth.dev/berth/pkg/nodeagent/podresources"
)

// TestAContainerWithoutTheDriverIsReplaced: what the container runtime adds of the driver, it adds when it creates the
// container.
func TestAContainerWithoutTheDriverIsReplaced(t *testing.T) {
	t.Parallel()
	mismatch := errors.New("Failed to initialize NVML: Driver/library version mismatch")
	for name, tc := range map[string]struct {
		change func(*world)
		after  time.Duration
		// alive says whether the container may live on, unseen how many devices count as not seen.
		alive  bool
		unseen float64
	}{
		"no driver, and the kubelet offers GPUs": {
			func(w *world) { w.machine, w.state.Held = nvidiasmi.ErrAbsent, nil }, 6 * time.Minute, false, 2},
		"no driver, and pods hold GPUs": {
			func(w *world) { w.machine, w.state.Offered = nvidiasmi.ErrAbsent, nil }, 6 * time.Minute, false, 1},
		"no driver for a short time":       {func(w *world) { w.machine = nvidiasmi.ErrAbsent }, 4 * time.Minute, true, 2},
		"a driver that was replaced":       {func(w *world) { w.machine = mismatch }, 7 * time.Minute, false, 2},
		"a container without device files": {func(w *world) { w.gpus = nil }, 7 * time.Minute, false, 2},
		"a machine without GPUs": {func(w *world) {
			w.machine, w.state = nvidiasmi.ErrAbsent,
				podresources.State{}
		}, time.Hour, true, 0},
		"a driver that hangs": {func(w *world) { w.machine = fmt.Errorf("no answer: %w", nvidiasmi.ErrHangs) },
			time.Hour, true, 0},
		"no driver and no kubelet": {func(w *world) { w.machine, w.kubelet = nvidiasmi.ErrAbsent, mismatch }, time.Hour, true,
			0},
		"all is well": {nil, time.Hour, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := twoGPUs()
				if tc.change != nil {
					tc.change(w)
				}
				a := run(t, w)
				time.Sleep(tc.after) //nolint:forbidigo // the bubble's clock
				synctest.Wait()
				if err := a.Alive(); (err == nil) != tc.alive {
					t.Errorf("after %s: %v, want alive to be %v", tc.after, err, tc.alive)
				}
				if got := testutil.ToFloat64(a.metrics.unseen); got != tc.unseen {
					t.Errorf("%v devices are not seen, want %v", got, tc.unseen)
				}
			})
		})
	}
}

func TestADriverThatComesInTimeKeepsTheContainer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := twoGPUs()
		w.machine = nvidiasmi.ErrAbsent
		a := run(t, w)
		for range 5 {
			time.Sleep(4 * time.Minute) //nolint:forbidigo // the bubble's clock
			synctest.Wait()
			w.mu.Lock()
			if w.machine == nil {
				w.machine = nvidiasmi.ErrAbsent
			} else {
				w.machine = nil
			}
			w.mu.Unlock()
			if err := a.Alive(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestALoopThatStandsStillIsNotAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := New(nil, nil, nil, intervals)
		a.turned.Store(time.Now().UnixNano())
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
		if a.Alive() == nil {
			t.Error("alive after 10 minutes without a turn")
		}
	})
}
