package tool_test

import (
	"runtime"
	"testing"
	"time"

	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/simulation"
	"berth.dev/berth/pkg/simulation/memapi"
)

// TestNothingOfASchedulerOutlivesIt runs many profiles of one scheduler that share all that they can, as many replays in
// one process do one after the other.
func TestNothingOfASchedulerOutlivesIt(t *testing.T) {
	t.Parallel()
	config, err := schedulerconfig.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	type kept struct{ scheduler *simulation.Scheduler }
	gone := make(chan struct{})
	func() {
		sched, err := simulation.NewScheduler(t.Context(), memapi.New(), config, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer sched.Stop()
		for name, profile := range sched.Profiles {
			k, err := informers.Shared(profile.SharedInformerFactory(), func() (*kept, error) {
				k := &kept{sched}
				runtime.AddCleanup(k, func(c chan struct{}) { close(c) }, gone)
				return k, nil
			})
			if err != nil || k.scheduler != sched {
				t.Fatalf("profile %s has another informer factory than the scheduler's other profiles: %v", name, err)
			}
		}
	}()
	deadline, tick := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return
		case <-tick.C:
			runtime.GC()
		case <-deadline:
			t.Fatal("something in the process still refers to what the profiles of a stopped scheduler shared")
		}
	}
}
