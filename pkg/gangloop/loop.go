package gangloop

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/evictor"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/reservation"
	"berth.dev/berth/pkg/retry"
	"berth.dev/berth/pkg/waitlist"
)

const (
	// settlePause lets the handlers of one event finish before its effect is looked at.
	settlePause = 5 * time.Millisecond
	// retryAnyway is how often every blocked gang is looked at without any event, for causes that no event announces.
	retryAnyway = time.Minute
)

// Loop decides when each gang that waits is tried: a new gang at once, a blocked one after something that can help it,
// in rounds that leave none out. A gang that does not fit by the account of free capacity is not tried at all, only
// told why.
//
// Each turn takes the news, brings the waitlist up to date, asks retry.Queue and retry.Pace who is next, and carries
// out what the ledger answers.
type Loop struct {
	Inbox        *Inbox
	List         *waitlist.List
	Reservations *reservation.Reservations
	// Opened is done when the gangs that there were at the start have been looked at. Before that no pod must be tried:
	// it could take the place that a member lacks whose siblings have theirs.
	Opened    opening
	ledger    *gang.Ledger
	effects   *Executor
	holds     *reservation.Holds
	evictor   *evictor.Evictor
	tries     *tries
	activator *activator
	// forgotten is told of gangs that the ledger has forgotten.
	forgotten func(gang.ID)
	due       dueTimes
}

// dueTimes are when the loop does something next.
type dueTimes struct{ look, anyway time.Time }

// Rooms are the owners of state that the loop asks and tells.
type Rooms struct {
	Ledger  *gang.Ledger
	Effects *Executor
	Holds   *reservation.Holds
	Evictor *evictor.Evictor
	Held    *HeldPods
	Pace    *retry.Pace
	Backoff gang.Backoff
	// Forgotten is told of gangs that the ledger has forgotten.
	Forgotten func(gang.ID)
}

// New returns a loop over the rooms, and has the waitlist ask it what a gang may not use of what is free.
func New(r Rooms, inbox *Inbox, list *waitlist.List, reservations *reservation.Reservations) *Loop {
	l := &Loop{Inbox: inbox, List: list, Reservations: reservations, Opened: make(opening), ledger: r.Ledger,
		effects: r.Effects, holds: r.Holds, evictor: r.Evictor, forgotten: r.Forgotten,
		tries: &tries{backoff: r.Backoff, ledger: r.Ledger, list: list, queue: retry.NewQueue(), pace: r.Pace,
			holds: r.Holds, reservations: reservations},
		activator: &activator{ledger: r.Ledger, list: list, effects: r.Effects, held: r.Held,
			preempting: &r.Evictor.Preempting}}
	list.Kept = l.tries.kept
	return l
}

// opening is closed at the end of the first turn.
type opening chan struct{}

// Name implements cache.DoneChecker.
func (opening) Name() string { return "gangs that are there at the start" }

// Done implements cache.DoneChecker.
func (o opening) Done() <-chan struct{} { return o }

// Run looks at once at what there is, and then at what changes.
func (l *Loop) Run(ctx context.Context) {
	l.ledger.Agenda.TakeOver()
	due := time.Now().Add(l.turn(ctx, time.Now()))
	close(l.Opened)
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Inbox.wake:
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
		case <-l.Inbox.wake:
		default:
		}
		pause := l.turn(ctx, time.Now())
		due = time.Now().Add(pause)
		timer.Reset(pause)
	}
}

// turn does what is due and returns after what time to look again.
func (l *Loop) turn(ctx context.Context, now time.Time) time.Duration {
	news := l.Inbox.Take()
	l.tries.foresee(now)
	fresh := l.refresh(news.Changed, now)
	l.tidy(now)
	gained := l.spread(ctx, &news, now)
	effects := l.tries.fresh(fresh, now)
	pause := retry.NextLook(now).Sub(now)
	sooner := func(wait time.Duration) {
		if wait > 0 {
			pause = min(pause, wait)
		}
	}
	again, wait := l.tries.batch(now)
	sooner(wait)
	paced, wait := l.tries.paced(now)
	sooner(wait)
	sooner(l.due.look.Sub(now))
	if l.ledger.Agenda.Flowing() {
		sooner(gang.Breath)
	}
	effects = slices.Concat(effects, again, paced, l.tries.resume(&news, now))
	effects = append(effects, l.activator.singles(gained, now))
	l.activator.preemptors(ctx, now)
	l.effects.Apply(ctx, append(effects, l.ledger.Agenda.Expire(l.tries.backoff, now))...)
	l.List.Priorities.Count(l.List.ByID)
	l.List.Capacity.Looks.Answer()
	if id := l.Reservations.Look(ctx, now); id != (gang.ID{}) {
		l.tries.queue.Retry(id, now)
	}
	l.tries.describe(now)
	return max(pause, settlePause)
}

// refresh brings the waitlist in line with the ledger, and returns the gangs that nothing has kept from starting yet.
func (l *Loop) refresh(changed map[gang.ID]bool, now time.Time) []*waitlist.Gang {
	l.due.look = time.Time{}
	var fresh []*waitlist.Gang
	for id := range changed {
		known := l.List.ByID[id]
		if known != nil && now.Before(known.RestUntil) {
			l.lookLater(id, known.RestUntil)
			continue
		}
		waits, ok := l.ledger.Agenda.Waiting(id)
		if !ok {
			l.see(id, known, now)
			continue
		}
		g := l.List.Put(waits, now)
		if g.Fresh && !g.RetryAt.After(now) {
			fresh = append(fresh, g)
			continue
		}
		l.tries.queue.Wait(id, g.Key, g.RetryAt, now)
		if g.Fresh || g.Touched {
			l.tries.queue.Retry(id, now)
		}
	}
	if len(changed) > 0 {
		l.Inbox.wantArrivals(l.List.Selective())
	}
	slices.SortFunc(fresh, waitlist.FirstByKey)
	return fresh
}

// see forgets what is kept for a gang that does not wait to be planned, because it is being planned, has started or is
// gone.
func (l *Loop) see(id gang.ID, known *waitlist.Gang, now time.Time) {
	v, exists := l.ledger.View(id)
	if exists && v.Plans() {
		return
	}
	l.tries.pace.Forget(id)
	if known != nil {
		l.List.Drop(known)
		l.tries.queue.Drop(id)
		l.holds.Gate.Away.ForgetGang(id)
		l.Reservations.Forget(id, exists && v.Started, now)
	}
	if !exists {
		l.forgotten(id)
	}
}

// lookLater has the gang looked at again at that time.
func (l *Loop) lookLater(id gang.ID, at time.Time) {
	l.Inbox.note(id)
	if l.due.look.IsZero() || at.Before(l.due.look) {
		l.due.look = at
	}
}

// spread tells the gangs concerned what has happened, and returns the shapes for which there is more room.
func (l *Loop) spread(ctx context.Context, n *News, now time.Time) (gained []capacity.ShapeKey) {
	gained, eased := l.List.Capacity.Looks.Refresh()
	for _, shape := range gained {
		for id := range l.List.ByShape[shape] {
			l.tries.queue.RetryTwice(id, now)
		}
	}
	if g := l.List.EndBackoff(gained, l.tries.backoff.Initial, now); g != nil {
		l.tries.queue.Wait(g.ID, g.Key, now, now)
	}
	if eased || len(gained) > 0 {
		l.holds.Gate.Away.Retry(reservation.WakeSome)
		l.activator.stragglers(ctx)
	}
	anyway := !now.Before(l.due.anyway)
	if anyway {
		l.due.anyway = retry.LastMultiple(now, retryAnyway).Add(retryAnyway)
		l.holds.Gate.Away.Retry(reservation.WakeAll)
		l.activator.held.Review(klog.FromContext(ctx))
	}
	if !eased && !anyway && len(n.happenings)+len(n.arrived) == 0 {
		return gained
	}
	for id, g := range l.List.ByID {
		concerned := anyway || (eased && g.Needs&waitlist.NeedsPods != 0) || g.Near.Has(n.arrived)
		for h := range n.happenings {
			concerned = concerned || h.Concerns(g)
		}
		if concerned {
			l.tries.queue.RetryTwice(id, now)
		}
	}
	return gained
}

// tidy ends what was kept for gangs that have started or do not wait any more, and what was to be evicted for them.
func (l *Loop) tidy(now time.Time) {
	l.holds.Expire(now)
	for _, id := range l.holds.Gangs() {
		v, known := l.ledger.View(id)
		l.holds.Drop(id, func(o reservation.Hold) bool {
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
