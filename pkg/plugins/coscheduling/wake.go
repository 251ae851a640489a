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
		effects, next := c.ledger.Retry(now, func(failed time.Time) bool {
			return room.After(failed) || now.Sub(failed) > retryAnyway
		}, retryAtOnce)
		c.carryOut(ctx, effects)
		c.carryOut(ctx, c.ledger.Expire(c.settings.backoff, now))
		pause := wakeEvery
		if !next.IsZero() {
			pause = min(max(next.Sub(now), retryPause), wakeEvery)
		}
		due = now.Add(pause)
		timer.Reset(pause)
	}
}

func types(uid gang.UID) apitypes.UID { return apitypes.UID(uid) }
