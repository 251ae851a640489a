package starts

import (
	"time"

	"berth.dev/berth/pkg/gang"
)

const (
	// longestRest bounds the pause between two turns of one group.
	longestRest = 24 * time.Hour
	// skipRest is the pause before a group for which nothing can be kept is looked at again.
	skipRest = time.Minute
	// late is how long after its estimated start a group may still start: pods take time to terminate.
	late = 30 * time.Second
)

// Turns decides for which group something is kept: one at a time, so that what idles is bounded by what one group
// needs.
//
// A turn lasts as long as it comes nearer to its goal. With a start, that is until the soonest one that was known in
// this turn; without one, it is while pods end. The turn ends when it has not come nearer for a given time. A group
// whose turn has ended so rests for that time, and twice as long after each further turn without a start, up to a day.
// So a group that can never be helped costs less and less, and all others come before it.
type Turns struct {
	patience time.Duration
	current  gang.ID
	since    time.Time
	// last is until when the turn came nearer to its goal, fewest how few pods had to end, and start the soonest start
	// that was known, zero without one.
	last, start time.Time
	fewest      int
	rests       map[gang.ID]groupRest
}

type groupRest struct {
	turns int
	until time.Time
}

// NewTurns returns turns that end after patience without progress.
func NewTurns(patience time.Duration) *Turns {
	return &Turns{patience: patience, rests: map[gang.ID]groupRest{}}
}

// Current returns the group whose turn it is and since when, or the zero ID.
func (t *Turns) Current() (gang.ID, time.Time) { return t.current, t.since }

// MayBegin reports whether the group may have the next turn.
func (t *Turns) MayBegin(id gang.ID, now time.Time) bool { return !now.Before(t.rests[id].until) }

// Rested is when the last rest of the group ends or has ended, zero if it had none.
func (t *Turns) Rested(id gang.ID) time.Time { return t.rests[id].until }

// Begin gives the turn to the group. told is the start in the group's status, zero without one.
func (t *Turns) Begin(id gang.ID, c *Choice, told, now time.Time) {
	t.current, t.since, t.last, t.start, t.fewest = id, now, now, time.Time{}, c.Pods
	t.expect(told)
	t.expect(c.Start)
}

// expect notes that the group can start at a time. A later start than one before is no progress.
func (t *Turns) expect(start time.Time) {
	if !start.IsZero() && (t.start.IsZero() || start.Before(t.start)) {
		t.start, t.last = start, start
	}
}

// Missed reports whether the group should have started by now. The known ends were wrong, so none are used for the rest
// of its turn.
func (t *Turns) Missed(now time.Time) bool { return !t.start.IsZero() && now.After(t.start.Add(late)) }

// Continue notes what is kept for the group whose turn it is, and reports whether its turn goes on.
func (t *Turns) Continue(c *Choice, now time.Time) bool {
	if c.Pods < t.fewest {
		t.fewest = c.Pods
		if now.After(t.last) {
			t.last = now
		}
	}
	t.expect(c.Start)
	if now.Sub(t.last) < t.patience {
		return true
	}
	rest := t.rests[t.current]
	pause := t.patience
	for range rest.turns {
		pause = min(2*pause, longestRest)
	}
	t.rests[t.current] = groupRest{turns: rest.turns + 1, until: now.Add(pause)}
	t.current = gang.ID{}
	return false
}

// End ends the turn of the group, if it has it, without a rest.
func (t *Turns) End(id gang.ID) {
	if t.current == id {
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
func (t *Turns) Forget(id gang.ID) {
	t.End(id)
	delete(t.rests, id)
}
