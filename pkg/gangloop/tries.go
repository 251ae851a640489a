package gangloop

import (
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/reservation"
	"berth.dev/berth/pkg/retry"
	"berth.dev/berth/pkg/waitlist"
)

const (
	// retryAtOnce is how many blocked gangs are tried again at a time: enough to use the capacity that was freed, few
	// enough that others in the queue do not wait behind them; retryPause separates such batches.
	retryAtOnce = 8
	retryPause  = 50 * time.Millisecond
)

// tries says which of the gangs that wait are tried now. It owns the queue of those that are blocked, and what gangs
// are about to take.
type tries struct {
	backoff      gang.Backoff
	ledger       *gang.Ledger
	list         *waitlist.List
	queue        *retry.Queue
	pace         *retry.Pace
	holds        *reservation.Holds
	reservations *reservation.Reservations
	coming       coming
	// batchAt and describeAt are when the next batch is tried, and reasons were last brought up to date. described is the
	// state of the account for which all of them are.
	batchAt, describeAt time.Time
	described           uint64
}

// fresh invites gangs that nothing has kept from starting yet.
func (t *tries) fresh(gangs []*waitlist.Gang, now time.Time) []gang.Effects {
	var effects []gang.Effects
	for _, g := range gangs {
		if t.contested(g) {
			t.queue.Wait(g.ID, g.Key, now, now)
			t.queue.RetryTwice(g.ID, now)
			continue
		}
		t.queue.Begin(g.ID, now)
		if e, ok := t.admit(g, now); ok {
			effects = append(effects, e)
		}
	}
	return effects
}

// batch invites blocked gangs, a few at a time, and returns after what time the next ones come, 0 if there are none.
func (t *tries) batch(now time.Time) (effects []gang.Effects, wait time.Duration) {
	if now.Before(t.batchAt) {
		return nil, t.batchAt.Sub(now)
	}
	for len(effects) < retryAtOnce {
		id, ok, wait := t.queue.First(now)
		if ok && t.contested(t.list.ByID[id]) {
			return effects, retryPause
		}
		if !ok {
			if len(effects) > 0 {
				break
			}
			return nil, wait
		}
		t.queue.Next(now)
		if e, ok := t.admit(t.list.ByID[id], now); ok {
			effects = append(effects, e)
		}
	}
	t.batchAt = now.Add(retryPause)
	return effects, retryPause
}

// admit invites the gang to plan, or puts it in line, and reports whether it was invited.
func (t *tries) admit(g *waitlist.Gang, now time.Time) (gang.Effects, bool) {
	if t.pace.Hold(g.ID, now) {
		return gang.Effects{}, false
	}
	return t.invite(g, now)
}

// paced invites those that stand in line and whose turn has come, and returns after what time to look again, 0 if
// none is left.
func (t *tries) paced(now time.Time) (effects []gang.Effects, wait time.Duration) {
	for {
		id, ok, wait := t.pace.Next(now)
		if !ok {
			return effects, wait
		}
		var invitation gang.Effects
		if g := t.list.ByID[id]; g != nil {
			invitation, _ = t.invite(g, now)
		}
		if invitation.Empty() {
			t.pace.Forget(id)
		}
		effects = append(effects, invitation)
	}
}

// invite returns the invitation of the gang to plan, or tells it why it cannot start without an attempt, and reports
// which.
func (t *tries) invite(g *waitlist.Gang, now time.Time) (gang.Effects, bool) {
	if t.excludes(g) {
		// Of those that were excluded before, describe tells the newest reasons, a few at a time.
		if !g.Excluded || g.Fresh {
			t.ledger.Agenda.RuleOut(g.ID, t.list.Why(g), now)
		}
		t.queue.Wait(g.ID, g.Key, g.RetryAt, now)
		t.pace.Forget(g.ID)
		if g.Excluded = true; !g.Listed {
			g.Listed = true
			t.list.Excluded = append(t.list.Excluded, g.ID)
		}
		return gang.Effects{}, false
	}
	g.Excluded = false
	t.coming.invited = append(t.coming.invited, g)
	return t.ledger.Agenda.Invite(g.ID, now), true
}

// excludes reports whether the gang cannot start by the account of free capacity. What runs on nodes that are reserved
// for it makes way once it fits there.
func (t *tries) excludes(g *waitlist.Gang) bool {
	return (g.Misstated != nil || !t.reservations.ReadyFor(g.ID)) && t.list.Excludes(g)
}

// resume has the gangs tried again for which pods to evict were found or evicted, and pods for which that is so or that
// were turned away from what is kept.
func (t *tries) resume(n *News, now time.Time) []gang.Effects {
	effects := make([]gang.Effects, 0, 1+len(n.found))
	for _, id := range n.found {
		if !t.pace.Recall(id, now) {
			effects = append(effects, t.ledger.Agenda.Resume(id, now))
		}
	}
	return append(effects, gang.Effects{Activate: n.activations})
}
