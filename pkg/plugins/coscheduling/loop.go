package coscheduling

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/evictor"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/reservation"
	"berth.dev/berth/pkg/retry"
	"berth.dev/berth/pkg/waitlist"
)

const (
	// settlePause lets the handlers of one event finish before its effect is looked at. Its odd nanoseconds, as those
	// of statusEvery, keep the loops apart from cycles and arrivals, which come at whole microseconds in a replay: what
	// falls on one moment races.
	settlePause = 5*time.Millisecond - 41_017*time.Nanosecond
	// retryAtOnce is how many blocked gangs are tried again at a time: enough to use the capacity that was freed, few
	// enough that others in the queue do not wait behind them; retryPause separates such batches.
	retryAtOnce = 8
	retryPause  = 50 * time.Millisecond
	// retryAnyway is how often every blocked gang is looked at without any event, for causes that no event announces.
	retryAnyway = time.Minute
)

// loop decides when each gang that waits is tried: a new gang at once, a blocked one after something that can help it,
// in rounds that leave none out. A gang that does not fit by the account of free capacity is not tried at all, only
// told why.
//
// Each turn takes the news, brings the waitlist up to date, asks retry.Queue and retry.Pace who is next, and carries
// out what the ledger answers.
type loop struct {
	settings     settings
	ledger       *gang.Ledger
	inbox        *inbox
	list         *waitlist.List
	queue        *retry.Queue
	plans        *dryrun.Pending
	reservations *reservation.Reservations
	promises     *reservation.Holds
	effects      *executor
	evictor      *evictor.Evictor
	held         *heldPods
	activator    *activator
	// forgotten is told of gangs that the ledger has forgotten.
	forgotten func(gang.ID)
	// opened is done when the gangs that there were at the start have been looked at. Before that no pod must be tried:
	// it could take the place that a member lacks whose siblings have theirs.
	opened opening
	clock  wallClock
	due    dueTimes
	coming coming
}

// dueTimes are when something is done next.
type dueTimes struct{ batch, look, anyway, describe time.Time }

// opening is closed at the end of the first turn.
type opening chan struct{}

// Name implements cache.DoneChecker.
func (opening) Name() string { return "gangs that are there at the start" }

// Done implements cache.DoneChecker.
func (o opening) Done() <-chan struct{} { return o }

// run looks at once at what there is, and then at what changes.
func (l *loop) run(ctx context.Context) {
	l.ledger.TakeOver()
	due := time.Now().Add(l.turn(ctx, time.Now()))
	close(l.opened)
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.inbox.wake:
			// What is due at this very moment is not put off, so that it makes no difference which of the two is seen first.
			timer.Reset(min(settlePause, time.Until(due)))
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
		case <-timer.C:
		}
		// This turn sees all that was noted before it: it needs no turn of its own.
		select {
		case <-l.inbox.wake:
		default:
		}
		pause := l.turn(ctx, time.Now())
		due = time.Now().Add(pause)
		timer.Reset(pause)
	}
}

// turn does what is due and returns after what time to look again.
func (l *loop) turn(ctx context.Context, now time.Time) time.Duration {
	l.clock.follow(ctx, now)
	news := l.inbox.take()
	l.foresee(now)
	fresh := l.refresh(news.changed, now)
	l.tidy(now)
	l.spread(ctx, &news, now)
	effects := l.tryFresh(fresh, now)
	pause := retry.NextLook(now).Sub(now)
	sooner := func(wait time.Duration) {
		if wait > 0 {
			pause = min(pause, wait)
		}
	}
	again, wait := l.tryBatch(now)
	sooner(wait)
	paced, wait := l.tryPaced(now)
	sooner(wait)
	sooner(l.due.look.Sub(now))
	if l.ledger.Flowing() {
		sooner(gang.Breath)
	}
	effects = slices.Concat(effects, again, paced, l.resume(&news, now))
	l.activator.preemptors(ctx, now)
	l.effects.apply(ctx, append(effects, l.ledger.Expire(l.settings.backoff, now))...)
	l.list.CountPriorities()
	l.list.Capacity.Answer()
	if id := l.reservations.Look(ctx, now); id != (gang.ID{}) {
		l.queue.Retry(id, now)
	}
	l.describeExcluded(now)
	return max(pause, settlePause)
}

// refresh brings the waitlist in line with the ledger, and returns the gangs that nothing has kept from starting yet.
func (l *loop) refresh(changed map[gang.ID]bool, now time.Time) []*waitlist.Gang {
	l.due.look = time.Time{}
	var fresh []*waitlist.Gang
	for id := range changed {
		known := l.list.ByID[id]
		if known != nil && now.Before(known.RestUntil) {
			l.lookLater(id, known.RestUntil)
			if at, paused := l.plans.GoesOn(id); paused {
				l.queue.Wait(id, known.Key, at, now)
				l.queue.Retry(id, now)
			}
			continue
		}
		waits, ok := l.ledger.Waiting(id)
		if !ok {
			l.see(id, known, now)
			continue
		}
		g := l.list.Put(waits, now)
		if g.Fresh && !g.RetryAt.After(now) {
			fresh = append(fresh, g)
			continue
		}
		l.queue.Wait(id, g.Key, g.RetryAt, now)
		if g.Fresh || g.Touched {
			l.queue.Retry(id, now)
		}
	}
	if len(changed) > 0 {
		l.inbox.wantArrivals(l.list.Selective())
	}
	slices.SortFunc(fresh, waitlist.FirstByKey)
	return fresh
}

// see forgets what is kept for a gang that does not wait to be planned, because it is being planned, has started or is
// gone.
func (l *loop) see(id gang.ID, known *waitlist.Gang, now time.Time) {
	v, exists := l.ledger.View(id)
	if exists && !v.Started && v.Quorum() {
		return
	}
	l.plans.Drop(id)
	if known != nil {
		l.list.Drop(known)
		l.queue.Drop(id)
		l.promises.ForgetGang(id)
		l.reservations.Forget(id, exists && v.Started, now)
	}
	if !exists {
		l.forgotten(id)
	}
}

// lookLater has the gang looked at again at that time.
func (l *loop) lookLater(id gang.ID, at time.Time) {
	l.inbox.mu.Lock()
	l.inbox.news.changed[id] = true
	l.inbox.mu.Unlock()
	if l.due.look.IsZero() || at.Before(l.due.look) {
		l.due.look = at
	}
}

// spread tells the gangs concerned what has happened.
func (l *loop) spread(ctx context.Context, n *news, now time.Time) {
	gained, eased := l.list.Capacity.Refresh()
	for _, shape := range gained {
		for id := range l.list.ByShape[shape] {
			l.queue.RetryTwice(id, now)
		}
	}
	if g := l.list.EndBackoff(gained, l.settings.backoff.Initial, now); g != nil {
		l.queue.Wait(g.ID, g.Key, now, now)
	}
	if eased || len(gained) > 0 {
		l.promises.Retry(reservation.WakeSome)
		l.activator.stragglers(ctx)
	}
	anyway := !now.Before(l.due.anyway)
	if anyway {
		l.due.anyway = retry.NextLook(retry.LastMultiple(now, retryAnyway).Add(retryAnyway))
		l.promises.Retry(reservation.WakeAll)
		l.held.Review(klog.FromContext(ctx))
	}
	if !eased && !anyway && len(n.happenings)+len(n.arrived) == 0 {
		return
	}
	for id, g := range l.list.ByID {
		concerned := anyway || (eased && g.Needs&waitlist.NeedsPods != 0) || g.Near.Has(n.arrived)
		for h := range n.happenings {
			concerned = concerned || h.Concerns(g)
		}
		if concerned {
			l.queue.RetryTwice(id, now)
		}
	}
}

// tryFresh invites gangs that nothing has kept from starting yet.
func (l *loop) tryFresh(fresh []*waitlist.Gang, now time.Time) []gang.Effects {
	var effects []gang.Effects
	for _, g := range fresh {
		if l.contested(g) {
			l.queue.Wait(g.ID, g.Key, now, now)
			l.queue.RetryTwice(g.ID, now)
			continue
		}
		l.queue.Begin(g.ID, now)
		if e, ok := l.admit(g, now); ok {
			effects = append(effects, e)
		}
	}
	return effects
}

// tryBatch invites blocked gangs, a few at a time, and returns after what time the next ones come, 0 if there are none.
func (l *loop) tryBatch(now time.Time) (effects []gang.Effects, wait time.Duration) {
	if now.Before(l.due.batch) {
		return nil, l.due.batch.Sub(now)
	}
	for len(effects) < retryAtOnce {
		id, ok, wait := l.queue.First(now)
		if ok && l.contested(l.list.ByID[id]) {
			return effects, retryPause
		}
		if !ok {
			if len(effects) > 0 {
				break
			}
			return nil, wait
		}
		l.queue.Next(now)
		if e, ok := l.admit(l.list.ByID[id], now); ok {
			effects = append(effects, e)
		}
	}
	l.due.batch = now.Add(retryPause)
	return effects, retryPause
}

// admit invites the gang to plan, or puts it in line, and reports whether it was invited.
func (l *loop) admit(g *waitlist.Gang, now time.Time) (gang.Effects, bool) {
	if l.plans.Pace.Hold(g.ID, now) {
		return gang.Effects{}, false
	}
	return l.invite(g, now)
}

// tryPaced invites those that stand in line and whose turn has come, and returns after what time to look again, 0 if
// none is left.
func (l *loop) tryPaced(now time.Time) (effects []gang.Effects, wait time.Duration) {
	for {
		id, ok, wait := l.plans.Pace.Next(now)
		if !ok {
			return effects, wait
		}
		var invitation gang.Effects
		if g := l.list.ByID[id]; g != nil {
			invitation, _ = l.invite(g, now)
		}
		if invitation.Empty() {
			l.plans.Pace.Forget(id)
		}
		effects = append(effects, invitation)
	}
}

// invite returns the invitation of the gang to plan, or tells it why it cannot start without an attempt, and reports
// which.
func (l *loop) invite(g *waitlist.Gang, now time.Time) (gang.Effects, bool) {
	if l.excludes(g) {
		// Of those that were excluded before, describeExcluded tells the newest reasons, a few at a time.
		if !g.Excluded || g.Fresh {
			l.ledger.RuleOut(g.ID, l.list.Why(g), now)
		}
		l.queue.Wait(g.ID, g.Key, g.RetryAt, now)
		l.plans.Drop(g.ID)
		if g.Excluded = true; !g.Listed {
			g.Listed = true
			l.list.Excluded = append(l.list.Excluded, g.ID)
		}
		return gang.Effects{}, false
	}
	g.Excluded = false
	l.coming.invited = append(l.coming.invited, g)
	return l.ledger.Invite(g.ID, now), true
}

// excludes reports whether the gang cannot start by the account of free capacity. What runs on nodes that are reserved
// for it makes way once it fits there.
func (l *loop) excludes(g *waitlist.Gang) bool {
	return (g.Misstated != nil || !l.reservations.ReadyFor(g.ID)) && l.list.Excludes(g)
}

// resume has the gangs tried again for which pods to evict were found or evicted, and pods for which that is so or that
// were turned away from what is kept.
func (l *loop) resume(n *news, now time.Time) []gang.Effects {
	effects := make([]gang.Effects, 0, 1+len(n.found))
	for _, id := range n.found {
		if !l.plans.Pace.Recall(id, now) {
			effects = append(effects, l.ledger.Resume(id, now))
		}
	}
	return append(effects, gang.Effects{Activate: n.activations})
}

// tidy ends what was kept for gangs that have started or do not wait any more.
func (l *loop) tidy(now time.Time) {
	l.promises.Expire(now)
	for _, id := range l.promises.Gangs() {
		v, known := l.ledger.View(id)
		l.promises.Drop(id, func(o reservation.Hold) bool {
			if o.Kind == reservation.ForReturn {
				return !known || v.Minimum.Total == 0 || v.Met() || !v.Started && v.Count[gang.Bound]+v.Holding == 0
			}
			return !known || v.Started || !v.Quorum()
		})
	}
	l.evictor.Tidy(now, func(id gang.ID) bool {
		v, known := l.ledger.View(id)
		return known && v.Quorum() && !v.Started
	})
}
