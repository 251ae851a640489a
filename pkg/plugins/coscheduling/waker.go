package coscheduling

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

const (
	// settlePause lets the handlers of one event finish before its effect is looked at. Its odd nanoseconds, as those of statusEvery,
	// keep the loops apart from cycles and arrivals, which come at whole microseconds in a replay: what falls on one moment races.
	settlePause = 5*time.Millisecond - 41_017*time.Nanosecond
	// retryAtOnce is how many blocked gangs are tried again at a time: enough to use the capacity that was freed, few enough
	// that others in the queue do not wait behind them; retryPause separates such batches.
	retryAtOnce = 8
	retryPause  = 50 * time.Millisecond
	// touchAnyway is how often every blocked gang is looked at without any event, for causes that no event announces.
	touchAnyway = time.Minute
	// rewordEvery is how often the reasons of gangs that are ruled out are brought up to date: of rewordAtOnce gangs at a time, and
	// of as many as take rewordFor where the cluster has changed for them. Nobody is woken meanwhile.
	rewordEvery  = time.Second
	rewordAtOnce = 100
	rewordFor    = 50 * time.Millisecond
	// describeRest is how long changes of a gang wait after a look at it, for each class beyond manyClasses.
	describeRest = time.Millisecond
	// promiseGrace is how long what pods were evicted for is kept after the last of them has gone.
	promiseGrace = time.Minute
)

// needs are what members may need besides room on a node, as a set.
type needs uint8

const (
	needsVolumes needs = 1 << iota
	needsDevices
	// needsPods is set if where a member may go depends on which pods are where.
	needsPods
	// needsAnything concerns every gang.
	needsAnything
	// needsEvictions is set if pods of lower priority are in the way.
	needsEvictions
)

// waker owns who waits to be planned and decides when each is tried: a new gang at once, a blocked one after something that
// can help it, in rounds that leave nobody out. What does not fit by the account of the cluster is not tried at all but told
// why.
type waker struct {
	*coordinator
	kick chan struct{}
	// opened is done when the gangs that there were at the start have been looked at. Before that no pod must be tried: it could take
	// the place that a member lacks whose siblings have theirs.
	opened opening
	// most is the highest priority of a gang that waits and whose priority counts, less than any if there is none.
	most atomic.Int64

	mu sync.Mutex
	// dirty are the gangs of which the ledger has said that they may look different, touches what else has happened.
	dirty   map[gang.ID]bool
	touches map[touch]bool
	summons summons
	// arrived are the pods that came to a node since the last turn, if a gang waits to which such pods matter, as selective says.
	arrived   []*v1.Pod
	selective bool

	// The rest belongs to the loop.
	clock   wallClock
	waiting map[gang.ID]*waitingGang
	byShape map[shapeKey]map[gang.ID]bool
	rounds  *gang.Rounds
	echoes  echoes
	batchAt time.Time
	// lookAt is when changes are looked at next that were put off.
	lookAt       time.Time
	reservations reservations
	anywayAt     time.Time
	// preemptorsAt is when preemptors are looked at next.
	preemptorsAt time.Time
	// ruledOut holds the gangs that the account rules out, in the order in which to look at them again.
	ruledOut   []gang.ID
	rewordedAt time.Time
}

// touch is something that may help some gangs: those that need the kind, of one namespace unless that is empty, or a single one.
type touch struct {
	kind      needs
	namespace string
	only      gang.ID
}

func (t touch) concerns(g *waitingGang) bool {
	return t.only == g.ID || (g.needs&t.kind != 0 && (t.namespace == "" || t.namespace == g.ID.Namespace))
}

// waitingGang is a gang that waits, with what the account of the cluster has to know of it.
type waitingGang struct {
	gang.Waiting
	shapes   []shapeNeed
	pods     []*v1.Pod
	needs    needs
	near     neighbors
	required []string
	// misstated is what is wrong with what the gang says of topology and models; nil if nothing is.
	misstated gang.Reason
	pause     pause
	// restUntil is before when changes of a gang of many classes are not looked at, as each look costs as much as there are classes.
	restUntil time.Time
	// ruledOut is set while the account rules the gang out, listed while it is in the list of such gangs.
	ruledOut, listed bool
	// worded is the state of the account for which the reason was last found.
	worded uint64
}

// pause is that of a gang after tries in vain.
type pause struct {
	// since is when the last try was seen to have been in vain, until what the ledger says.
	since, until time.Time
	// misjudged is set if the gang fitted by the account then, relieved if the pause has been ended.
	misjudged, relieved bool
}

func newWaker() *waker {
	w := &waker{kick: make(chan struct{}, 1), opened: make(opening), dirty: map[gang.ID]bool{}, touches: map[touch]bool{},
		waiting: map[gang.ID]*waitingGang{}, byShape: map[shapeKey]map[gang.ID]bool{}, rounds: gang.NewRounds()}
	w.most.Store(w.highest())
	return w
}

// wire gives the loop what it works with.
func (w *waker) wire(c *coordinator) {
	w.coordinator, w.reservations.turns = c, gang.NewReserveTurns(c.settings.ttl)
}

// mark notes that the gang may look different. It is called under the ledger's lock.
func (w *waker) mark(id gang.ID) {
	w.mu.Lock()
	w.dirty[id] = true
	w.mu.Unlock()
	w.look()
}

// touch notes that something happened that may help gangs.
func (w *waker) touch(t touch) {
	w.mu.Lock()
	w.touches[t] = true
	w.mu.Unlock()
	w.look()
}

// arrive notes that a pod came to a node, which may help gangs whose members have to be near it.
func (w *waker) arrive(pod *v1.Pod) {
	w.mu.Lock()
	selective := w.selective
	if selective {
		w.arrived = append(w.arrived, pod)
	}
	w.mu.Unlock()
	if selective {
		w.look()
	}
}

// look makes the loop look at what has changed.
func (w *waker) look() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// opening is closed at the end of the first turn.
type opening chan struct{}

// Name implements cache.DoneChecker.
func (opening) Name() string { return "gangs that are there at the start" }

// Done implements cache.DoneChecker.
func (o opening) Done() <-chan struct{} { return o }

// run looks at once at what there is, and then at what changes.
func (w *waker) run(ctx context.Context) {
	w.ledger.TakeOver()
	due := time.Now().Add(w.turn(ctx, time.Now()))
	close(w.opened)
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
			// What is due at this very moment is not put off, so that it makes no difference which of the two is seen first.
			timer.Reset(min(settlePause, time.Until(due)))
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
		case <-timer.C:
		}
		// This turn sees all that was noted before it: what kicked meanwhile needs no turn of its own.
		select {
		case <-w.kick:
		default:
		}
		pause := w.turn(ctx, time.Now())
		due = time.Now().Add(pause)
		timer.Reset(pause)
	}
}

// turn does what is due and returns when to look again.
func (w *waker) turn(ctx context.Context, now time.Time) time.Duration {
	w.followClock(ctx, now)
	fresh := w.refresh(now)
	w.tidy(now)
	w.spread(ctx, now)
	slices.SortFunc(fresh, firstByKey)
	var effects []gang.Effects
	// admit invites the gang or puts it in line, and reports whether it was invited.
	admit := func(g *waitingGang) bool {
		if w.plans.pace.Hold(g.ID, now) {
			return false
		}
		invitation, ok := w.decide(g, now)
		if ok {
			effects = append(effects, invitation)
		}
		return ok
	}
	for _, g := range fresh {
		w.echoes.add(g.ID, now)
		w.rounds.Begin(g.ID)
		admit(g)
	}
	pause := nextLook(now).Sub(now)
	if now.Before(w.batchAt) {
		pause = min(pause, w.batchAt.Sub(now))
	} else {
		invited := 0
		for invited < retryAtOnce {
			id, ok, wait := w.rounds.Next(now)
			if !ok {
				if wait > 0 {
					pause = min(pause, wait)
				}
				break
			}
			if admit(w.waiting[id]) {
				invited++
			}
		}
		if invited > 0 {
			w.batchAt = now.Add(retryPause)
			pause = min(pause, retryPause)
		}
	}
	inLine, wait := w.nextInLine(now)
	effects = append(effects, inLine...)
	if wait > 0 {
		pause = min(pause, wait)
	}
	if w.lookAt.After(now) {
		pause = min(pause, w.lookAt.Sub(now))
	}
	if w.ledger.Flowing() {
		pause = min(pause, gang.Breath)
	}
	effects = append(effects, w.summon(now)...)
	if !now.Before(w.preemptorsAt) {
		w.preemptorsAt = nextLook(now)
		w.helpPreemptors(ctx)
	}
	w.carrier.carry(ctx, append(effects, w.ledger.Expire(w.settings.backoff, now))...)
	w.most.Store(w.highest())
	w.headroom.answer()
	w.reserve(ctx, now)
	w.reword(now)
	return max(pause, settlePause)
}

// nextInLine invites those that stand in line whose turn has come, and returns after what time to look again, 0 if nobody is left.
func (w *waker) nextInLine(now time.Time) (effects []gang.Effects, wait time.Duration) {
	for {
		id, ok, wait := w.plans.pace.Next(now)
		if !ok {
			return effects, wait
		}
		var invitation gang.Effects
		if g := w.waiting[id]; g != nil {
			invitation, _ = w.decide(g, now)
		}
		if invitation.Empty() {
			w.plans.pace.Forget(id)
		}
		effects = append(effects, invitation)
	}
}

// firstByKey orders gangs as they are tried.
func firstByKey(a, b *waitingGang) int {
	switch {
	case a.Key.Less(b.Key):
		return -1
	case b.Key.Less(a.Key):
		return 1
	}
	return 0
}

// spread tells the gangs concerned what has happened.
func (w *waker) spread(ctx context.Context, now time.Time) {
	w.mu.Lock()
	touches, arrived := w.touches, w.arrived
	w.touches, w.arrived = map[touch]bool{}, nil
	w.mu.Unlock()
	for _, id := range w.echoes.take(now) {
		w.rounds.Touch(id, now)
	}
	gained, eased := w.headroom.refresh()
	for _, shape := range gained {
		for id := range w.byShape[shape] {
			w.rounds.Touch(id, now)
			w.echoes.add(id, now)
		}
	}
	w.relieve(gained, now)
	if eased || len(gained) > 0 {
		w.promises.retry(wakeSome)
		w.help(ctx)
	}
	anyway := !now.Before(w.anywayAt)
	if anyway {
		w.anywayAt = nextLook(lastMultiple(now, touchAnyway).Add(touchAnyway))
		w.promises.retry(wakeAll)
	}
	if !eased && !anyway && len(touches)+len(arrived) == 0 {
		return
	}
	for id, g := range w.waiting {
		concerned := anyway || (eased && g.needs&needsPods != 0) || g.near.has(arrived)
		for t := range touches {
			concerned = concerned || t.concerns(g)
		}
		if concerned {
			w.rounds.Touch(id, now)
			w.echoes.add(id, now)
		}
	}
}

// decide returns the invitation of the gang to plan, or tells it why it cannot start without trying, and reports which.
func (w *waker) decide(g *waitingGang, now time.Time) (gang.Effects, bool) {
	if reason := w.ruleOut(g); reason != nil {
		w.ledger.RuleOut(g.ID, reason, now)
		w.rounds.Wait(g.ID, g.Key, g.RetryAt, now)
		w.plans.drop(g.ID)
		if g.ruledOut = true; !g.listed {
			g.listed = true
			w.ruledOut = append(w.ruledOut, g.ID)
		}
		return gang.Effects{}, false
	}
	g.ruledOut = false
	return w.ledger.Invite(g.ID, now), true
}

// tidy ends what was kept for gangs that have started or do not wait any more.
func (w *waker) tidy(now time.Time) {
	w.promises.expire(now)
	for _, id := range w.promises.gangs() {
		v, known := w.ledger.View(id)
		w.promises.drop(id, func(o promise) bool {
			if o.kind == forReturn {
				return !known || v.Minimum.Total == 0 || v.Met() || !v.Started && v.Count[gang.Bound]+v.Holding == 0
			}
			return !known || v.Started || !v.Quorum()
		})
	}
	w.evictor.tidy(now, func(id gang.ID) bool {
		v, known := w.ledger.View(id)
		return known && v.Quorum() && !v.Started
	})
}
