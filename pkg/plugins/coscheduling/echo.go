package coscheduling

import (
	"time"

	"berth.dev/berth/pkg/gang"
)

// echoAfter is how long after an event a gang that it may help is tried once more. Informers tell the account of the cluster and
// the scheduler's cache of an event in no order, so that the first attempt may not have seen it.
const echoAfter = time.Second

// echoes are the gangs that are to be tried once more, in the order in which they are due. A gang has one echo at a time.
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
	e.due = append(e.due, echo{id, now.Add(echoAfter)})
}

// take returns the gangs whose echo is due.
func (e *echoes) take(now time.Time) []gang.ID {
	var ids []gang.ID
	for len(e.due) > 0 && !e.due[0].at.After(now) {
		ids = append(ids, e.due[0].id)
		delete(e.pending, e.due[0].id)
		e.due = e.due[1:]
	}
	return ids
}
