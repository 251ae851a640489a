package coscheduling

import (
	"context"
	"time"

	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gang"
)

const (
	// roomSlack covers the time that an event needs from our handler to the scheduler's own: a gang that failed so
	// soon after it may not have seen its effect.
	roomSlack = 500 * time.Millisecond
	// wakeEvery bounds how late the loop notices a schedule timeout.
	wakeEvery = time.Second
	// retryAnyway is when a blocked gang is tried again without any event, for causes that no event announces.
	retryAnyway = time.Minute
	// retryAtOnce is how many blocked gangs are tried again at a time: enough to use the room that was made, few enough
	// that others in the queue do not wait behind them.
	retryAtOnce = 8
	// retryPause separates such batches.
	retryPause = 50 * time.Millisecond
)

// roomMade records that there may be more room than before.
func (c *coordinator) roomMade() {
	c.roomAt.Store(time.Now().UnixNano())
	c.look()
}

// look makes the wake loop look at what has changed.
func (c *coordinator) look() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// wake tries blocked gangs again after room was made, the most important first, and ends plans that ran out of time.
func (c *coordinator) wake(ctx context.Context) {
	timer := time.NewTimer(wakeEvery)
	defer timer.Stop()
	due := time.Now().Add(wakeEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.kick:
			// Events come in bursts, and a gang that is tried after the first of them is tried in vain.
			if soon := time.Now().Add(retryPause); soon.Before(due) {
				due = soon
				timer.Reset(retryPause)
			}
			continue
		}
		now := time.Now()
		room := time.Unix(0, c.roomAt.Load()).Add(roomSlack)
		next := c.retry(ctx, now, func(failed time.Time) bool { return room.After(failed) || now.Sub(failed) > retryAnyway })
		c.reserve(ctx, now)
		c.carryOut(ctx, c.ledger.Expire(c.settings.backoff, now))
		pause := wakeEvery
		if !next.IsZero() {
			pause = min(max(next.Sub(now), retryPause), wakeEvery)
		}
		due = now.Add(pause)
		timer.Reset(pause)
	}
}

// retry wakes the first few of the gangs that are due and have a chance, and returns when to look again.
func (c *coordinator) retry(ctx context.Context, now time.Time, since func(failed time.Time) bool) time.Time {
	due, next := c.ledger.Due(now, since)
	slots := map[string]int{}
	woken, hopeless, degraded := 0, 0, 0
	for i := range due {
		d := &due[i]
		if degraded > 0 && !d.Degraded {
			// Seats that running gangs have lost are theirs first, so the others are woken when they have been served.
			return now
		}
		if !c.chance(d, slots) && !c.holds(d.ID) {
			if hopeless++; hopeless > 1 {
				c.ledger.Postpone(d.ID, now)
				continue
			}
			// The first of those without a chance is tried all the same, so that what it says it lacks stays true.
			if again := d.Failed.Add(rewordPause); again.After(now) {
				if next.IsZero() || again.Before(next) {
					next = again
				}
				continue
			}
		}
		if woken++; woken > retryAtOnce {
			return now
		}
		if d.Degraded {
			degraded++
		}
		c.carryOut(ctx, c.ledger.Retry(d.ID, now))
	}
	return next
}

// chance reports whether the gang might fit by a rough account of what is free. Slots remembers the answers by class,
// which many gangs share.
func (c *coordinator) chance(d *gang.Due, slots map[string]int) bool {
	fits := 0
	for class, n := range d.Classes {
		free, known := slots[class]
		if !known {
			pod := c.pod(d.Example[class])
			if pod == nil {
				return true
			}
			for _, n := range c.room.Slots(pod, false) {
				free += n
			}
			slots[class] = free
		}
		fits += min(n, free)
	}
	return fits >= d.Need
}

func types(uid gang.UID) apitypes.UID { return apitypes.UID(uid) }
