package tool_test

import (
	"runtime"
	"testing"

	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

// TestNothingOfASchedulerOutlivesIt runs many profiles of one scheduler that share all that they can, as many replays
// in one process do one after the other.
func TestNothingOfASchedulerOutlivesIt(t *testing.T) {
	t.Parallel()
	config, err := schedulerconfig.Shipped()
	require.NoError(t, err)
	type kept struct{ world *simulation.World }
	gone := make(chan struct{})
	func() {
		w := simulation.NewWorld()
		defer w.Stop()
		require.NoError(t, w.Start(simulation.Setup{Config: config, Parallelism: 1}))
		for name, profile := range w.Profiles {
			k, err := informers.Shared(profile.SharedInformerFactory(), func() (*kept, error) {
				k := &kept{w}
				runtime.AddCleanup(k, func(c chan struct{}) { close(c) }, gone)
				return k, nil
			})
			if err != nil || k.world != w {
				t.Fatalf("profile %s has another informer factory than the scheduler's other profiles: %v", name, err)
			}
		}
	}()
	await.Until(t, "what the profiles of a stopped scheduler shared to be collected", func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}
