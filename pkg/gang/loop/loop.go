package loop

import (
	"context"
	"maps"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/preempt"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gang/waiting"
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
// Each turn takes the news, brings the list of gangs that wait up to date, asks waiting.Queue and waiting.Pace who is
// next, and carries out what the ledger answers.
type Loop struct {
	Rooms
	Inbox        *waiting.Inbox
	List         *waiting.List
	Reservations *hold.Reservations
	// Opened is done when the gangs that there were at the start have been looked at. Before that no pod must be tried:
	// it could take the place that a member lacks whose siblings have theirs.
	Opened opening
	queue  *waiting.Queue
	coming coming
	// resting are gangs that changed during a pause, to be looked at again.
	resting map[gang.ID]bool
	due     dueTimes
	// described is the state of the account for which all reasons are.
	described uint64
}

// dueTimes are when the loop does something next; described is when reasons were last brought up to date.
type dueTimes struct{ look, anyway, preemptors, described time.Time }

// Rooms are the owners of state that the loop asks and tells.
type Rooms struct {
	Ledger  *gang.Ledger
	Effects *Executor
	Holds   *hold.Holds
	Evictor *preempt.Evictor
	Held    *HeldPods
	Pace    *waiting.Pace
	Backoff gang.Backoff
	Status  *status.Controller
}

// New returns a loop over the rooms.
func New(r Rooms, inbox *waiting.Inbox, list *waiting.List, reservations *hold.Reservations) *Loop {
	return &Loop{Rooms: r, Inbox: inbox, List: list, Reservations: reservations, Opened: make(opening),
		queue: waiting.NewQueue(), resting: map[gang.ID]bool{}}
}

// opening is closed at the end of the first turn.
type opening chan struct{}

// Name implements cache.DoneChecker.
func (opening) Name() string { return "gangs that are there at the start" }

// Done implements cache.DoneChecker.
func (o opening) Done() <-chan struct{} { return o }

// Run looks at once at what there is, and then at what changes.
func (l *Loop) Run(ctx context.Context) {
	l.Ledger.Agenda.TakeOver()
	due := time.Now().Add(l.turn(ctx, time.Now()))
	close(l.Opened)
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Inbox.Wake:
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
		case <-l.Inbox.Wake:
		default:
		}
		pause := l.turn(ctx, time.Now())
		due = time.Now().Add(pause)
		timer.Reset(pause)
	}
}

// turn does what is due and returns after what time to look again.
func (l *Loop) turn(ctx context.Context, now time.Time) time.Duration {
	late := l.Held.takeLate()
	// What ends here is news of this turn: gangs are looked at before the pods that come after them.
	l.tidy(now)
	news, changed := l.Inbox.Take(), l.Ledger.Agenda.Changed()
	for id := range changed {
		l.Status.Enqueue(id)
	}
	l.foresee(now)
	l.refresh(changed, now)
	gained, eased := l.spread(ctx, &news, now)
	pause := waiting.NextLook(now).Sub(now)
	sooner := func(wait time.Duration) {
		if wait > 0 {
			pause = min(pause, wait)
		}
	}
	singles := l.singles(gained, now)
	effects, wait := l.next(now)
	sooner(wait)
	sooner(l.due.look.Sub(now))
	if l.Ledger.Agenda.Flowing() {
		sooner(gang.QueuePause)
	}
	effects = append(effects, l.resume(&news, now)...)
	if eased || len(gained) > 0 {
		effects = append(effects, l.stragglers())
	}
	effects = append(effects, singles, l.preemptors(now), l.Ledger.Agenda.Expire(l.Backoff, now))
	l.Effects.Apply(ctx, effects...)
	l.List.Capacity.Looks.Answer()
	l.Held.wakeLate(klog.FromContext(ctx), late)
	l.List.Priorities.Count(l.List.ByID, l.Held.backlog.Heads())
	if id := l.Reservations.Look(ctx, now); id != (gang.ID{}) {
		l.queue.Retry(id, now)
	}
	l.describe(now)
	return max(pause, settlePause)
}

// refresh brings the list in line with the ledger.
func (l *Loop) refresh(changed map[gang.ID]bool, now time.Time) {
	l.due.look = time.Time{}
	maps.Copy(changed, l.resting)
	clear(l.resting)
	for id := range changed {
		known := l.List.ByID[id]
		if known != nil && now.Before(known.RestUntil) {
			l.lookLater(id, known.RestUntil)
			continue
		}
		waits, ok := l.Ledger.Agenda.Waiting(id)
		if !ok {
			l.see(id, known, now)
			continue
		}
		g, failed := l.List.Put(waits, now)
		if failed {
			g.Backoff.Misjudged = l.misjudged(g)
		}
		if g.Fresh && !g.RetryAt.After(now) {
			l.queue.Join(id, g.Key, now)
			continue
		}
		l.queue.Wait(id, g.Key, g.RetryAt, now)
		if g.Fresh || g.Touched {
			l.queue.Retry(id, now)
		}
	}
	if len(changed) > 0 {
		l.Inbox.WantArrivals(l.List.Selective())
	}
}

// see forgets what is kept for a gang that does not wait to be planned, because it is being planned, has started or is
// gone.
func (l *Loop) see(id gang.ID, known *waiting.Gang, now time.Time) {
	v, exists := l.Ledger.View(id)
	if exists && v.Plans() {
		return
	}
	if known != nil {
		l.List.Drop(known)
		l.queue.Drop(id)
		l.Holds.Gate.Away.ForgetGang(id)
		l.Reservations.Forget(id, exists && v.Started, now)
	}
	if !exists {
		l.Holds.Gate.Owners.Drop(id)
	}
}

// lookLater has the gang looked at again at that time.
func (l *Loop) lookLater(id gang.ID, at time.Time) {
	l.resting[id] = true
	if l.due.look.IsZero() || at.Before(l.due.look) {
		l.due.look = at
	}
}

// spread tells the gangs concerned what has happened. It returns the shapes for which there is more room, and whether
// something else may be free.
func (l *Loop) spread(ctx context.Context, n *waiting.News, now time.Time) (gained []capacity.ShapeKey, eased bool) {
	gained, eased = l.List.Capacity.Looks.Refresh()
	for _, shape := range gained {
		for id := range l.List.ByShape[shape] {
			l.retry(l.List.ByID[id], now)
		}
	}
	l.endBackoff(gained, n.Happenings, now)
	if eased || len(gained)+len(n.Happenings)+len(n.Arrived) > 0 {
		l.Holds.Gate.Away.Retry(hold.WakeSome)
	}
	anyway := !now.Before(l.due.anyway)
	if anyway {
		l.due.anyway = waiting.LastMultiple(now, retryAnyway).Add(retryAnyway)
		l.Holds.Gate.Away.Retry(hold.WakeAll)
		l.Held.Review(klog.FromContext(ctx))
	}
	if !eased && !anyway && len(n.Happenings)+len(n.Arrived) == 0 {
		return gained, eased
	}
	for _, g := range l.List.ByID {
		concerned := anyway || (eased && g.Needs&waiting.NeedsPods != 0) || g.Near.Has(n.Arrived)
		for h := range n.Happenings {
			concerned = concerned || h.Concerns(g)
		}
		if concerned {
			l.retry(g, now)
		}
	}
	return gained, eased
}

// retry has a gang tried for which something has happened, unless the account rules it out as before. Why it does is
// for describe to tell.
func (l *Loop) retry(g *waiting.Gang, now time.Time) {
	if !g.Excluded || !l.excludes(g) {
		l.queue.RetryTwice(g.ID, now)
	}
}

// tidy ends what was kept for gangs that have started or do not wait any more, and what was to be evicted for them.
func (l *Loop) tidy(now time.Time) {
	l.Holds.Expire(now)
	for _, id := range l.Holds.Gangs() {
		v, known := l.Ledger.View(id)
		l.Holds.Drop(func(o hold.Hold) bool {
			switch o.Kind {
			case hold.ForRest:
				return !known
			case hold.ForReturn:
				return !known || v.Minimum.Total == 0 || v.Met() || !v.Started && v.Count[gang.Bound]+v.Holding == 0
			}
			return !known || v.Started || !v.Quorum()
		}, id)
	}
	l.Evictor.Tidy(now, func(id gang.ID) bool {
		v, known := l.Ledger.View(id)
		return known && v.Quorum() && !v.Started
	})
}
