package replay

import (
	"syscall"
	"testing/synctest"
	"time"

	"berth.dev/berth/pkg/lab/replay/replayed"
)

// settleTime is longer than plugins wait for further events before they act on one.
const settleTime = 100 * time.Millisecond

// conductor is the goroutine that advances a replay. It waits until all other goroutines are idle, then does one thing:
// apply a waiting write to the API, apply the next event of the trace that is due, or let the scheduling loop take one
// step. Time passes only when nothing is left to do.
type conductor struct {
	options Options
	gate    *gate
	cluster *cluster

	// owed says that a cycle has run whose time has not passed yet; rested, that time has passed since the scheduler
	// became idle.
	owed   bool
	rested bool
	cycles int
	cpu    time.Duration
}

// run advances the replay until it is over. cancelled is polled: waiting for a channel from outside would stop the
// virtual clock.
func (c *conductor) run(cancelled func() error) error {
	for {
		synctest.Wait()
		if err := cancelled(); err != nil {
			return err
		}
		if c.cluster.world.API.CommitFirst() {
			continue
		}
		if c.options.Mode == replayed.ArrivalOrder && c.idle() && !c.rested {
			// A gang enters the queue a moment after its last pod. It is decided before the next job arrives.
			c.rested = true
			time.Sleep(settleTime) //nolint:forbidigo // virtual time
			continue
		}
		if c.cluster.handleEvents() {
			continue
		}
		if c.cluster.step(time.Now(), c.idle()) {
			c.rested = false
			continue
		}
		switch c.gate.at() {
		case beforePop:
			if c.owed {
				c.owed = false
				time.Sleep(c.options.CycleTime) //nolint:forbidigo // virtual time: this is what a scheduling cycle takes
				continue
			}
			c.gate.open()
		case beforeCycle:
			c.cycle()
		default:
			if c.cluster.over() {
				return nil
			}
			c.rest()
		}
	}
}

// idle reports whether the scheduler has nothing left to decide at this instant.
func (c *conductor) idle() bool { return c.gate.at() == popping }

// cycle lets the loop schedule its pod, and adds the CPU time to that of the scheduler.
func (c *conductor) cycle() {
	c.cycles++
	c.owed, c.rested = true, false
	before := processCPU()
	c.gate.open()
	synctest.Wait()
	c.cpu += processCPU() - before
}

// rest lets time pass until something happens.
func (c *conductor) rest() {
	timer := time.NewTimer(time.Until(c.cluster.nextEvent()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.gate.changed:
	case <-c.cluster.world.API.Pending():
	case <-c.cluster.changed:
	}
}

// processCPU is the CPU time of the process, user and system.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
