package coscheduling

import (
	"context"
	"time"

	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

const (
	// roomSlack covers the time that an event needs from our handler to the scheduler's own: a gang that failed so
	// soon after it may not have seen its effect.
	roomSlack = 500 * time.Millisecond
	// wakeEvery bounds how late the loop notices a schedule timeout.
	wakeEvery = time.Second
	// retryAnyway is when a blocked gang is tried again without any event, for causes that no event announces.
	retryAnyway = time.Minute
	// retryHopeless is when a gang that does not fit by the account of what is free is tried again all the same, because
	// it would if others were evicted, and no event says when a budget allows that.
	retryHopeless = 5 * time.Minute
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
	odds := odds{c: c, slots: map[oddsKey]int{}, sums: map[oddsKey]int64{}}
	woken, hopeless, degraded := 0, 0, 0
	for i := range due {
		d := &due[i]
		if degraded > 0 && !d.Degraded {
			// Seats that running gangs have lost are theirs first, so the others are woken when they have been served.
			return now
		}
		if !odds.fits(d, false) && !c.holds(d.ID) {
			hopeless++
			switch again := d.Failed.Add(rewordPause); {
			case now.Sub(d.Failed) > retryHopeless && odds.fits(d, true):
			case hopeless > 1:
				c.ledger.Postpone(d.ID, now)
				continue
			// The first of those without a chance is tried all the same, so that what it says it lacks stays true.
			case again.After(now):
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

// odds answers whether gangs might fit by a rough account of the cluster, and remembers what many of them have in common.
type odds struct {
	c *coordinator
	// slots holds how many members of a class fit, sums how much there is of a resource.
	slots map[oddsKey]int
	sums  map[oddsKey]int64
}

type oddsKey struct {
	of    string
	empty bool
}

// fits reports whether the gang might fit into what is free or, with empty set, into the cluster if nothing ran in it.
func (o *odds) fits(d *gang.Due, empty bool) bool {
	fits := 0
	for class, n := range d.Classes {
		key := oddsKey{class, empty}
		slots, known := o.slots[key]
		if !known {
			pod := o.c.pod(d.Example[class])
			if pod == nil {
				return true
			}
			for _, n := range o.c.room.Slots(pod, empty) {
				slots += n
			}
			o.slots[key] = slots
		}
		fits += min(n, slots)
	}
	return fits >= d.Need && o.enough(d, empty)
}

// enough reports whether there might be as much as the gang's minResources say. The account does not tell what the gang's
// own members hold, so a gang that has some is given the benefit of the doubt.
func (o *odds) enough(d *gang.Due, empty bool) bool {
	wanted := kubeview.MinResources(o.c.podGroup(d.ID))
	if len(wanted) == 0 || len(o.c.ledger.Nodes(d.ID)) > 0 {
		return true
	}
	for name, n := range wanted {
		if claimed(o.c.anyProfile(), name) {
			continue
		}
		key := oddsKey{string(name), empty}
		sum, known := o.sums[key]
		if !known {
			sum = o.c.room.Sum(name, empty)
			o.sums[key] = sum
		}
		if sum < n {
			return false
		}
	}
	return true
}

func types(uid gang.UID) apitypes.UID { return apitypes.UID(uid) }
