package coscheduling

import (
	"cmp"
	"slices"
	"time"

	"berth.dev/berth/pkg/gang"
)

const (
	// lookEvery bounds how late the waker notices that a time is over.
	lookEvery = time.Second
	// lookOffset keeps the looks apart from what happens on full milliseconds.
	lookOffset = 337_019 * time.Nanosecond
	// echoAfter is about how long after an event a gang that it may help is tried once more. Informers tell the account
	// of the cluster and the scheduler's cache of an event in no order, so that the first attempt may not have seen it.
	echoAfter = time.Second
)

// nextLook returns when the waker looks next after that time if nothing happens. The looks are at fixed times of the
// clock: counted from the last event, all that follows in a replay would depend on how many events its informers made
// of one change.
func nextLook(after time.Time) time.Time {
	at := lastMultiple(after, lookEvery).Add(lookOffset)
	if !at.After(after) {
		at = at.Add(lookEvery)
	}
	return at
}

// lastMultiple is the last time that is a multiple of every. Unlike that of Truncate it has a reading of the monotonic clock, so that
// what is due is not put off for as long as the clock on the wall is set back.
func lastMultiple(until time.Time, every time.Duration) time.Time {
	return until.Add(until.Truncate(every).Sub(until))
}

// echoes are the gangs that are to be tried once more, in the order in which they are due. A gang has one echo at a
// time.
type echoes struct {
	due     []echo
	pending map[gang.ID]bool
}

type echo struct {
	id gang.ID
	at time.Time
}

// add lets the gang have an echo of what has happened now.
func (e *echoes) add(id gang.ID, now time.Time) {
	if e.pending[id] {
		return
	}
	if e.pending == nil {
		e.pending = map[gang.ID]bool{}
	}
	e.pending[id] = true
	e.due = append(e.due, echo{id, nextLook(now.Add(echoAfter / 2))})
}

// take returns the gangs whose echo is due, by name.
func (e *echoes) take(now time.Time) []gang.ID {
	var ids []gang.ID
	for len(e.due) > 0 && !e.due[0].at.After(now) {
		ids = append(ids, e.due[0].id)
		delete(e.pending, e.due[0].id)
		e.due = e.due[1:]
	}
	slices.SortFunc(ids, func(a, b gang.ID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return ids
}
