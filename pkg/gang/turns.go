package gang

import "time"

const (
	// longestRest bounds the pause between two turns of one group.
	longestRest = 24 * time.Hour
	// skipRest is the pause before a group for which nothing can be kept is looked at again.
	skipRest = time.Minute
)

// ReserveTurns decides whose turn it is to have room kept for it: one group at a time, so that what idles is bounded by what
// one group needs.
//
// A turn lasts as long as it comes nearer to its goal: it ends when for a given time no fewer pods had to end than before.
// A group whose turn has ended so rests for that time, and twice as long after each further turn in vain, up to a day. So a
// group that can never be helped costs less and less, and all others come before it.
type ReserveTurns struct {
	patience    time.Duration
	current     ID
	since, last time.Time
	fewest      int
	rests       map[ID]reserveRest
}

type reserveRest struct {
	turns int
	until time.Time
}

// NewReserveTurns returns turns that end after patience without progress.
func NewReserveTurns(patience time.Duration) *ReserveTurns {
	return &ReserveTurns{patience: patience, rests: map[ID]reserveRest{}}
}

// Current returns the group whose turn it is and since when, or the zero ID.
func (t *ReserveTurns) Current() (ID, time.Time) { return t.current, t.since }

// MayBegin reports whether the group may have the next turn.
func (t *ReserveTurns) MayBegin(id ID, now time.Time) bool { return !now.Before(t.rests[id].until) }

// Begin gives the turn to the group, for which so many pods have to end.
func (t *ReserveTurns) Begin(id ID, pods int, now time.Time) {
	t.current, t.since, t.last, t.fewest = id, now, now, pods
}

// Continue notes how many pods have to end for the group whose turn it is, and reports whether its turn goes on.
func (t *ReserveTurns) Continue(pods int, now time.Time) bool {
	if pods < t.fewest {
		t.fewest, t.last = pods, now
	}
	if now.Sub(t.last) < t.patience {
		return true
	}
	rest := t.rests[t.current]
	pause := t.patience
	for range rest.turns {
		pause = min(2*pause, longestRest)
	}
	t.rests[t.current] = reserveRest{turns: rest.turns + 1, until: now.Add(pause)}
	t.current = ID{}
	return false
}

// End ends the turn of the group, if it has it, without a rest.
func (t *ReserveTurns) End(id ID) {
	if t.current == id {
		t.current = ID{}
	}
}

// Skip lets a group for which nothing can be kept rest for a while.
func (t *ReserveTurns) Skip(id ID, now time.Time) {
	rest := t.rests[id]
	rest.until = now.Add(skipRest)
	t.rests[id] = rest
}

// Forget forgets a group that does not wait any more.
func (t *ReserveTurns) Forget(id ID) {
	t.End(id)
	delete(t.rests, id)
}
