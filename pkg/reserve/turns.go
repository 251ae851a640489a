package reserve

import (
	"time"

	"berth.dev/berth/pkg/gang"
)

const (
	// longestRest bounds the pause between two turns of one group.
	longestRest = 24 * time.Hour
	// skipRest is the pause before a group for which nothing can be kept is looked at again.
	skipRest = time.Minute
)

// Turns decides whose turn it is to have room kept for it: one group at a time, so that what idles is bounded by
// what one group needs.
//
// A turn lasts as long as it comes nearer to its goal: it ends when for a given time no fewer pods had to end than
// before. A group whose turn has ended so rests for that time, and twice as long after each further turn without a
// start, up to a day. So a group that can never be helped costs less and less, and all others come before it.
//
// What was kept without a start also counts for the namespace if pods of other namespaces were kept off it: when that
// took a turn's time in all, no group of the namespace has a turn for a while. A group that is renamed or created again
// gains nothing.
type Turns struct {
	patience    time.Duration
	current     gang.ID
	since, last time.Time
	fewest      int
	rests       map[gang.ID]groupRest
	// harmful is set if pods of other namespaces were turned away in the current turn.
	harmful    bool
	namespaces map[string]*namespaceRest
}

// namespaceRest is what groups of a namespace have kept from others without a start.
type namespaceRest struct {
	groupRest
	// used is for how long since the last rest, charged when that was counted last.
	used    time.Duration
	charged time.Time
}

type groupRest struct {
	turns int
	until time.Time
}

// NewTurns returns turns that end after patience without progress.
func NewTurns(patience time.Duration) *Turns {
	return &Turns{patience: patience, rests: map[gang.ID]groupRest{}, namespaces: map[string]*namespaceRest{}}
}

// Current returns the group whose turn it is and since when, or the zero ID.
func (t *Turns) Current() (gang.ID, time.Time) { return t.current, t.since }

// MayBegin reports whether the group may have the next turn.
func (t *Turns) MayBegin(id gang.ID, now time.Time) bool {
	if n := t.namespaces[id.Namespace]; n != nil && now.Before(n.until) {
		return false
	}
	return !now.Before(t.rests[id].until)
}

// Rested is when the last rest of the group ends or has ended, zero if it had none.
func (t *Turns) Rested(id gang.ID) time.Time { return t.rests[id].until }

// Harm notes that a pod of another namespace was turned away for the group whose turn it is.
func (t *Turns) Harm() { t.harmful = true }

// account counts the current turn, which ends without a start, for the namespace.
func (t *Turns) account(now time.Time) {
	if t.harmful {
		t.Charge(t.current.Namespace, t.since, now)
	}
}

// Charge counts for the namespace that others were kept off for one of its groups since some time, which has not
// started.
func (t *Turns) Charge(namespace string, since, now time.Time) {
	n := t.namespaces[namespace]
	if n == nil {
		n = &namespaceRest{}
		t.namespaces[namespace] = n
	}
	n.charged = now
	if n.used += now.Sub(since); n.used < t.patience {
		return
	}
	n.used, n.until = 0, now.Add(n.pause(t.patience))
	n.turns++
}

// pause is how long the rest after one more turn without a start is.
func (r *groupRest) pause(shortest time.Duration) time.Duration {
	for range r.turns {
		shortest = min(2*shortest, longestRest)
	}
	return shortest
}

// Begin gives the turn to the group, for which a number of pods have to end.
func (t *Turns) Begin(id gang.ID, pods int, now time.Time) {
	t.current, t.since, t.last, t.fewest, t.harmful = id, now, now, pods, false
}

// Continue notes how many pods have to end for the group whose turn it is, and reports whether its turn goes on.
func (t *Turns) Continue(pods int, now time.Time) bool {
	if pods < t.fewest {
		t.fewest, t.last = pods, now
	}
	if now.Sub(t.last) < t.patience {
		return true
	}
	t.Rest(t.current, now)
	t.account(now)
	t.current = gang.ID{}
	return false
}

// Overdue reports whether a turn without progress since some time ends.
func (t *Turns) Overdue(since, now time.Time) bool { return now.Sub(since) >= t.patience }

// Spent reports whether a turn's time is over for the namespace: what its groups have kept from others since some time
// and what counts already.
func (t *Turns) Spent(namespace string, since, now time.Time) bool {
	n := t.namespaces[namespace]
	return n != nil && n.used+now.Sub(since) >= t.patience
}

// Rest lets a group rest that did not start although something was kept for it, twice as long each time.
func (t *Turns) Rest(id gang.ID, now time.Time) {
	rest := t.rests[id]
	t.rests[id] = groupRest{turns: rest.turns + 1, until: now.Add(rest.pause(t.patience))}
}

// Credit counts for the namespace that one of its groups has started for which something was kept since some time: as
// much is forgotten of what was kept without a start. A rest goes on, and rests stay as long until the namespace has
// done without one for as long as the next one is. Otherwise a small group that starts would pay for a large one.
func (t *Turns) Credit(namespace string, since, now time.Time) {
	n := t.namespaces[namespace]
	if n == nil {
		return
	}
	if since.Before(n.charged) {
		since = n.charged
	}
	n.used = max(n.used-now.Sub(since), 0)
	if n.used == 0 && (n.turns == 0 || !now.Before(n.until.Add(n.pause(t.patience)))) {
		delete(t.namespaces, namespace)
	}
}

// End ends the turn of the group, if it has it, without a rest.
func (t *Turns) End(id gang.ID, now time.Time) {
	if t.current == id {
		t.account(now)
		t.current = gang.ID{}
	}
}

// Skip lets a group for which nothing can be kept rest for a while.
func (t *Turns) Skip(id gang.ID, now time.Time) {
	rest := t.rests[id]
	rest.until = now.Add(skipRest)
	t.rests[id] = rest
}

// Forget forgets a group that does not wait any more, because it has started or is gone.
func (t *Turns) Forget(id gang.ID, started bool, now time.Time) {
	if t.current == id && started {
		t.Credit(id.Namespace, t.since, now)
		t.current = gang.ID{}
	}
	t.End(id, now)
	delete(t.rests, id)
}
