// Package installed does to the scheduler of a benchmark what berth-scheduler does to its own between making and
// running it.
package installed

import (
	"fmt"

	"k8s.io/kubernetes/pkg/scheduler"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/process/decisions"
)

// Berth is set where the scheduler that is measured is berth-scheduler. The stock one is left as it is.
var Berth bool

// Prepare is called with every scheduler that has been made and not started.
func Prepare(sched *scheduler.Scheduler) error {
	if !Berth {
		return nil
	}
	candidates.Wrap(sched.Profiles)
	history, err := decisions.New(decisions.Default)
	if err != nil {
		return fmt.Errorf("preparing the scheduler: %w", err)
	}
	decisions.Wrap(sched.Profiles, history)
	sched.SchedulingQueue, sched.FailureHandler = coscheduling.Listen(sched.Profiles, sched.SchedulingQueue,
		sched.FailureHandler)
	sched.Cache = coscheduling.Follow(sched.Profiles, sched.Cache, sched.WaitForHandlersSync)
	return nil
}
