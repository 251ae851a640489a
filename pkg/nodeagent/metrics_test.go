package nodeagent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
)

// TestEverySourceThatFailsHasATime: an alert looks at how old the last reading is, which it cannot if there is no time.
func TestEverySourceThatFailsHasATime(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	const never = -1
	for name, tc := range map[string]struct {
		before, after func(*world)
		// kubelet and machine are how long ago the two were last read, after 20 minutes, or never.
		kubelet, machine time.Duration
	}{
		"all is well": {nil, nil, time.Minute, time.Minute},
		"neither has ever been read": {func(w *world) { w.kubelet, w.machine = down, down }, nil, 20 * time.Minute,
			20 * time.Minute},
		"both fail after 10 minutes": {nil, func(w *world) { w.kubelet, w.machine = down, down }, 10 * time.Minute,
			10 * time.Minute},
		"a machine without GPUs has no driver": {func(w *world) { w.machine = nvidiasmi.ErrAbsent }, nil, time.Minute, never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := twoGPUs()
				if tc.before != nil {
					tc.before(w)
				}
				a := run(t, w)
				time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
				synctest.Wait()
				if tc.after != nil {
					w.mu.Lock()
					tc.after(w)
					w.mu.Unlock()
				}
				time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
				synctest.Wait()
				sources := testutil.CollectAndCount(a.metrics.lastRead)
				for source, want := range map[string]time.Duration{"kubelet": tc.kubelet, "nvidia-smi": tc.machine} {
					if want == never {
						if sources != 1 {
							t.Errorf("%d sources have a time, want 1", sources)
						}
						continue
					}
					age := time.Since(time.Unix(int64(testutil.ToFloat64(a.metrics.lastRead.WithLabelValues(source))), 0))
					if age > want+time.Minute || age < want-2*time.Minute {
						t.Errorf("%s was last read %s ago, want about %s", source, age, want)
					}
				}
			})
		})
	}
}
