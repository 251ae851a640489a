package gang

import (
	"container/heap"
	"time"
)

// Rounds decides which blocked group is tried next.
//
// A blocked group is tried only after it was touched, that is, after something happened that may help it, and not
// before its back-off has ended. Attempts come in rounds. A round tries each group at most once, always the first by
// Key of those that are due and that the round has not tried yet. A group that is touched after its turn in a round is
// due in the next one, and a round ends when no group is left. A group that is new to Rounds has had its attempt in the
// current round.
//
// Therefore no group can be overtaken for long, whatever the stream of events: while Rounds knows at most k groups at a
// time, a group that waits, was touched and whose back-off is over is among the next 2k − 1 groups that Next gives. A
// round gives only groups that Rounds knew when the round began, so at most k − 1 others belong to the rest of the
// current round, and at most k − 1 others come first in the next one.
//
// Every method takes O(log k) time. A Rounds is not safe for concurrent use.
type Rounds struct {
	round  uint64
	groups map[ID]*blocked
	// due holds the groups that the current round still tries and later those of the next round, both in the order of
	// their keys; resting holds those that were touched during their back-off, in the order in which it ends.
	due, later, resting *turns
}

// blocked is a group of which Rounds knows.
type blocked struct {
	id      ID
	key     Key
	retryAt time.Time
	// tried is the round in which the last attempt began.
	tried uint64
	// trying is set from the beginning of an attempt to the Wait or Drop that ends it.
	trying bool
	// touched is set if something happened since the last attempt began.
	touched bool
	// in is the heap that holds the group at index at, or nil.
	in *turns
	at int
}

// NewRounds returns Rounds without groups.
func NewRounds() *Rounds {
	return &Rounds{
		round:   1,
		groups:  map[ID]*blocked{},
		due:     &turns{before: firstByKey},
		later:   &turns{before: firstByKey},
		resting: &turns{before: firstByTime},
	}
}

// Begin records that an attempt for the group begins that Next did not ask for, such as its first one. A Touch during
// the attempt counts once the attempt has failed. Wait or Drop ends the attempt.
func (r *Rounds) Begin(id ID) { r.begin(r.group(id)) }

// Wait records that the attempt for the group failed, and that the group is not tried again before it is touched nor
// before retryAt. For a group that waits already it changes the key and the time only.
func (r *Rounds) Wait(id ID, key Key, retryAt, now time.Time) {
	b := r.group(id)
	b.key, b.retryAt = key, retryAt
	b.trying = false
	r.place(b, now)
}

// Touch records that something happened that may help the group. A group that Rounds does not know is ignored.
func (r *Rounds) Touch(id ID, now time.Time) {
	if b := r.groups[id]; b != nil && !b.touched {
		b.touched = true
		r.place(b, now)
	}
}

// Drop forgets the group: it starts, is gone or cannot be tried for other reasons.
func (r *Rounds) Drop(id ID) {
	if b := r.groups[id]; b != nil {
		b.leave()
		delete(r.groups, id)
	}
}

// Next returns the group whose turn it is, and begins its attempt. Without such a group, wait is the time until the
// first back-off ends of a group that was touched, or 0 if no group was.
func (r *Rounds) Next(now time.Time) (id ID, ok bool, wait time.Duration) {
	for len(r.resting.groups) > 0 && !r.resting.groups[0].retryAt.After(now) {
		r.place(r.resting.groups[0], now)
	}
	if len(r.due.groups) == 0 {
		r.round++
		r.due, r.later = r.later, r.due
	}
	switch {
	case len(r.due.groups) > 0:
		b := r.due.groups[0]
		r.begin(b)
		return b.id, true, 0
	case len(r.resting.groups) > 0:
		return ID{}, false, r.resting.groups[0].retryAt.Sub(now)
	}
	return ID{}, false, 0
}

// group returns the group. One that is new is being tried: only an attempt that fails makes a group blocked.
func (r *Rounds) group(id ID) *blocked {
	b := r.groups[id]
	if b == nil {
		b = &blocked{id: id, trying: true, tried: r.round}
		r.groups[id] = b
	}
	return b
}

func (r *Rounds) begin(b *blocked) {
	b.leave()
	b.trying, b.touched, b.tried = true, false, r.round
}

// place puts the group into the heap in which it belongs.
func (r *Rounds) place(b *blocked, now time.Time) {
	var to *turns
	switch {
	case b.trying || !b.touched:
	case b.retryAt.After(now):
		to = r.resting
	case b.tried == r.round:
		to = r.later
	default:
		to = r.due
	}
	if b.in == to && to != nil {
		heap.Fix(to, b.at)
		return
	}
	b.leave()
	if to != nil {
		heap.Push(to, b)
	}
}

func (b *blocked) leave() {
	if b.in != nil {
		heap.Remove(b.in, b.at)
	}
}

func firstByKey(a, b *blocked) bool {
	switch {
	case a.key.Less(b.key):
		return true
	case b.key.Less(a.key):
		return false
	case a.id.Namespace != b.id.Namespace:
		return a.id.Namespace < b.id.Namespace
	default:
		return a.id.Name < b.id.Name
	}
}

func firstByTime(a, b *blocked) bool { return a.retryAt.Before(b.retryAt) }

// turns is a heap of groups that know their places in it.
type turns struct {
	groups []*blocked
	before func(a, b *blocked) bool
}

// Len is part of heap.Interface.
func (t *turns) Len() int { return len(t.groups) }

// Less is part of heap.Interface.
func (t *turns) Less(i, j int) bool { return t.before(t.groups[i], t.groups[j]) }

// Swap is part of heap.Interface.
func (t *turns) Swap(i, j int) {
	t.groups[i], t.groups[j] = t.groups[j], t.groups[i]
	t.groups[i].at, t.groups[j].at = i, j
}

// Push is part of heap.Interface.
func (t *turns) Push(x any) {
	b := x.(*blocked)
	b.in, b.at = t, len(t.groups)
	t.groups = append(t.groups, b)
}

// Pop is part of heap.Interface.
func (t *turns) Pop() any {
	last := len(t.groups) - 1
	b := t.groups[last]
	t.groups[last] = nil
	t.groups = t.groups[:last]
	b.in = nil
	return b
}
