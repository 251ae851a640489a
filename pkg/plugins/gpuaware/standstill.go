package gpuaware

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"berth.dev/berth/pkg/informers"
)

const (
	// electionWithin is how long after its start a process has begun an election if it takes part in one, and electionEvery how
	// often it is looked for.
	electionWithin, electionEvery = 30 * time.Second, 2 * time.Second
	// beatEvery is how often the process notes that it runs.
	beatEvery = 250 * time.Millisecond
	// standstillLimit is how long it may have stood still and still lead: others wait for at least the 15 s that a lease lasts
	// by default, less the pause between two renewals.
	standstillLimit = 5 * time.Second
	// standstillGrace is how long after that no devices are given: the leader election needs a moment to find out that another
	// process leads, and ends this one.
	standstillGrace = 5 * time.Second
)

// errStoodStill means that another process may lead by now, which does not know what this one was about to do.
var errStoodStill = errors.New("the scheduler stood still for long, and another may lead by now; trying again")

// standstill notices that the process was suspended or got no CPU. Its books may be those of a time when it led, while another
// process has given the same devices to other pods: the API server takes both.
type standstill struct {
	// beaten is when the process last noted that it runs, ended when it last went on after a standstill, in nanoseconds of the
	// wall clock, which goes on while a machine is suspended.
	beaten, ended atomic.Int64
	// elected reports whether processes take turns at all.
	elected func() bool
}

func newStandstill() *standstill {
	return &standstill{elected: func() bool {
		_, running := informers.Leads()
		return running
	}}
}

// keep notes that the process runs, until ctx ends. Where no processes take turns nobody asks, and a clock that ticks for ever is most
// of the work of a replay.
func (s *standstill) keep(ctx context.Context) {
	err := wait.PollUntilContextTimeout(ctx, electionEvery, electionWithin, true, func(context.Context) (bool, error) { return s.elected(), nil })
	if err == nil {
		wait.UntilWithContext(ctx, func(context.Context) { s.beat(time.Now()) }, beatEvery)
	}
}

func (s *standstill) beat(now time.Time) {
	if last := s.beaten.Swap(now.UnixNano()); last != 0 && now.UnixNano()-last > int64(standstillLimit) {
		s.ended.Store(now.UnixNano())
	}
}

// check returns an error if the process stood still a moment ago.
func (s *standstill) check(now time.Time) error {
	last, since := s.beaten.Load(), now.UnixNano()-s.ended.Load()
	still := last != 0 && now.UnixNano()-last > int64(standstillLimit)
	if (still || (since >= 0 && since < int64(standstillGrace))) && s.elected() {
		return errStoodStill
	}
	return nil
}
