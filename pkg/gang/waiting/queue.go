package waiting

import (
	"slices"
	"strings"
	"time"

	"berth.dev/berth/pkg/gang"
)

const (
	// LookEvery is how often the loop looks at what no event announces.
	LookEvery = time.Second
	// secondAfter is about how long after an event a gang is tried once more. Informers tell the loop and the plugins of
	// claims, volumes and licenses in no order, so the first attempt may not have seen it.
	secondAfter = time.Second
)

// NextLook returns the first of the fixed times at which the loop looks after that time. Counted from the last event,
// the looks would depend on how many events its informers made of one change.
func NextLook(after time.Time) time.Time { return LastMultiple(after, LookEvery).Add(LookEvery) }

// LastMultiple is the last time that is a multiple of every. Unlike that of Truncate it has a reading of the monotonic
// clock, so what is due is not put off for as long as the wall clock is set back.
func LastMultiple(until time.Time, every time.Duration) time.Time {
	return until.Add(until.Truncate(every).Sub(until))
}

// Queue decides which blocked gang is tried next.
//
// A blocked gang is tried only when something has happened that may help it (Retry), and not before its back-off ends.
// Attempts come in rounds. A round tries each gang at most once, always the first by Key of those that are due and that
// the round has not tried yet. A gang that becomes due after its attempt in a round is due in the next one, and a round
// ends when no gang is left. A gang that is new to the Queue has had its attempt in the current round.
//
// Therefore no gang is overtaken for long, whatever the stream of events: while the Queue knows at most k gangs at a
// time, a due gang is among the next 2k − 1 gangs that Next returns. A round returns only gangs that the Queue knew
// when the round began, so at most k − 1 others belong to the rest of the current round, and at most k − 1 others come
// first in the next.
//
// A Queue is not safe for concurrent use.
type Queue struct {
	round uint64
	gangs map[gang.ID]*entry
	// ready holds the gangs that may be tried now, in order.
	ready []*entry
	// timerAt is when a back-off or the wait for a second attempt ends next, zero if none does.
	timerAt time.Time
}

// entry is a gang that the Queue knows.
type entry struct {
	id  gang.ID
	key gang.Key
	// retryAt is when the back-off ends, secondAt when a second attempt is due, zero if none is.
	retryAt, secondAt time.Time
	// tried is the round in which the last attempt began, turn the one of the next.
	tried, turn uint64
	// trying is set from the beginning of an attempt to the Wait or Drop that ends it.
	trying bool
	// due is set if something happened since the last attempt began, ready if the gang is in the list.
	due, ready bool
}

// NewQueue returns a Queue without gangs.
func NewQueue() *Queue { return &Queue{round: 1, gangs: map[gang.ID]*entry{}} }

// Join takes in a gang that nothing has kept from starting yet. It is tried in the current round, and once more about a
// second later.
func (q *Queue) Join(id gang.ID, key gang.Key, now time.Time) {
	e := q.entry(id)
	q.remove(e)
	e.key, e.retryAt, e.tried, e.trying, e.due = key, time.Time{}, 0, false, true
	q.place(e, now)
	q.second(e, now)
}

// Wait records that the attempt for the gang failed, and that it is not tried again before a Retry nor before retryAt.
// For a gang that waits already it changes the key and the time only.
func (q *Queue) Wait(id gang.ID, key gang.Key, retryAt, now time.Time) {
	e := q.entry(id)
	q.remove(e)
	e.key, e.retryAt, e.trying = key, retryAt, false
	q.place(e, now)
}

// Retry records that something happened that may help the gang. A gang that the Queue does not know is ignored.
func (q *Queue) Retry(id gang.ID, now time.Time) {
	if e := q.gangs[id]; e != nil && !e.due {
		e.due = true
		q.place(e, now)
	}
}

// RetryTwice does the same, and has the gang tried once more after about a second.
func (q *Queue) RetryTwice(id gang.ID, now time.Time) {
	q.Retry(id, now)
	if e := q.gangs[id]; e != nil {
		q.second(e, now)
	}
}

// Drop forgets the gang: it starts, is gone or cannot be tried for other reasons.
func (q *Queue) Drop(id gang.ID) {
	if e := q.gangs[id]; e != nil {
		q.remove(e)
		delete(q.gangs, id)
	}
}

// Next returns the gang to try, and begins its attempt. Without one, wait is the time until the next back-off or wait
// for a second attempt ends, or 0 if there is none.
func (q *Queue) Next(now time.Time) (id gang.ID, ok bool, wait time.Duration) {
	if id, ok, wait = q.First(now); ok {
		q.begin(q.gangs[id])
	}
	return id, ok, wait
}

// First is Next without an attempt.
func (q *Queue) First(now time.Time) (id gang.ID, ok bool, wait time.Duration) {
	if !q.timerAt.IsZero() && !now.Before(q.timerAt) {
		q.timerAt = time.Time{}
		for _, e := range q.gangs {
			if !e.secondAt.IsZero() && !now.Before(e.secondAt) {
				e.secondAt, e.due = time.Time{}, true
			}
			q.setTimer(e.secondAt)
			q.place(e, now)
		}
	}
	if len(q.ready) == 0 || q.ready[0].turn > q.round {
		q.round++
	}
	switch {
	case len(q.ready) > 0:
		return q.ready[0].id, true, 0
	case q.timerAt.IsZero():
		return gang.ID{}, false, 0
	}
	return gang.ID{}, false, q.timerAt.Sub(now)
}

// entry returns the gang. One that is new is being tried: only an attempt that fails makes a gang blocked.
func (q *Queue) entry(id gang.ID) *entry {
	e := q.gangs[id]
	if e == nil {
		e = &entry{id: id, trying: true, tried: q.round}
		q.gangs[id] = e
	}
	return e
}

func (q *Queue) begin(e *entry) {
	q.remove(e)
	e.trying, e.due, e.tried = true, false, q.round
}

// second has the gang tried a second time, unless that is planned already.
func (q *Queue) second(e *entry, now time.Time) {
	if e.secondAt.IsZero() {
		e.secondAt = NextLook(now.Add(secondAfter / 2))
		q.setTimer(e.secondAt)
	}
}

// place puts the gang into the list if it may be tried, or sets the timer for the end of its back-off.
func (q *Queue) place(e *entry, now time.Time) {
	switch {
	case e.trying || !e.due || e.ready:
	case e.retryAt.After(now):
		q.setTimer(e.retryAt)
	default:
		e.ready, e.turn = true, q.round
		if e.tried == q.round {
			e.turn++
		}
		at, _ := slices.BinarySearchFunc(q.ready, e, compare)
		q.ready = slices.Insert(q.ready, at, e)
	}
}

func (q *Queue) remove(e *entry) {
	if e.ready {
		e.ready = false
		if q.ready[0] == e { // nothing has to move
			q.ready[0], q.ready = nil, q.ready[1:]
			return
		}
		at, _ := slices.BinarySearchFunc(q.ready, e, compare)
		q.ready = slices.Delete(q.ready, at, at+1)
	}
}

func (q *Queue) setTimer(at time.Time) {
	if !at.IsZero() && (q.timerAt.IsZero() || at.Before(q.timerAt)) {
		q.timerAt = at
	}
}

// compare orders gangs as they are tried.
func compare(a, b *entry) int {
	switch {
	case a.turn != b.turn:
		if a.turn < b.turn {
			return -1
		}
		return 1
	case a.key.Less(b.key):
		return -1
	case b.key.Less(a.key):
		return 1
	case a.id.Namespace != b.id.Namespace:
		return strings.Compare(a.id.Namespace, b.id.Namespace)
	}
	return strings.Compare(a.id.Name, b.id.Name)
}
