package replay

import (
	"context"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/simulation"
)

// settleTime is how long plugins may wait for further events before they act on one.
const settleTime = 100 * time.Millisecond

// conductor is the one goroutine of a replay that lets anything happen. It waits until every other goroutine has come
// to rest and then does one thing: apply a write that waits at the API, apply the next event of the trace that is due,
// or let the scheduling loop take one step. Only when there is nothing to do does time pass.
type conductor struct {
	options Options
	sched   *simulation.Scheduler
	gate    *gate
	cluster *cluster

	// owed says that a cycle has run whose time has not passed yet; rested that time has passed since the scheduler had
	// nothing left to decide.
	owed   bool
	rested bool
	cycles int
	cpu    time.Duration
}

// run conducts until the replay is over. cancelled is polled, because a channel from outside would stop the virtual
// clock.
func (c *conductor) run(cancelled func() error) error {
	for {
		synctest.Wait()
		if err := cancelled(); err != nil {
			return err
		}
		if c.cluster.api.CommitFirst() {
			continue
		}
		if c.options.Mode == replayed.ArrivalOrder && c.idle() && !c.rested {
			// What waits for a moment before it enters the queue, as a gang does, is decided before the next job arrives.
			c.rested = true
			time.Sleep(settleTime) //nolint:forbidigo // virtual time
			continue
		}
		if c.cluster.digest() {
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
			if c.cluster.over() || !c.rest() {
				return nil
			}
		}
	}
}

// idle says whether the scheduler has nothing left to decide at this instant.
func (c *conductor) idle() bool { return c.gate.at() == popping }

// cycle lets the loop schedule the pod it holds and charges the processor time to the scheduler.
func (c *conductor) cycle() {
	c.cycles++
	c.owed, c.rested = true, false
	before := processCPU()
	c.gate.open()
	synctest.Wait()
	c.cpu += processCPU() - before
}

// rest lets time pass until something happens, and reports false when nothing ever will.
func (c *conductor) rest() bool {
	wake := c.cluster.nextEvent()
	timer := time.NewTimer(time.Until(wake))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.gate.changed:
	case <-c.cluster.api.Pending():
	case <-c.cluster.changed:
	}
	return true
}

// start runs the scheduler's queue and its loop, and returns a function that stops the scheduler.
func (c *conductor) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.sched.SchedulingQueue.Run(klog.FromContext(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.gate.drive(ctx, c.sched)
	}()
	return func() {
		cancel()
		c.sched.Stop()
		<-done
	}
}
