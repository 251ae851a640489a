package gang

import (
	"time"

	"berth.dev/berth/pkg/obstacle"
)

// Backoff bounds the pause between two attempts to plan a group that does not fit.
type Backoff struct{ Initial, Max time.Duration }

// after is the pause after a number of failures in a row. The first costs nothing: a group is tried again only when
// something has changed, and the group that came first should not lose what became free to one that happens to be tried
// at that moment.
func (b Backoff) after(attempts int) time.Duration {
	if attempts < 2 {
		return 0
	}
	d := b.Initial
	for range attempts - 2 {
		if d >= b.Max {
			return b.Max
		}
		d *= 2
	}
	return min(d, b.Max)
}

// block is why and until when a group is not tried.
type block struct {
	reason obstacle.Reason
	// touched is set if something has happened since that may help the group.
	touched bool
	// short holds the classes with members that found no node, so that more of them are no news.
	short map[string]bool
	// cycle is set if a scheduling cycle of the leader found it, which then says so itself.
	cycle bool
}

// attempts is what is known of plans for a group.
type attempts struct {
	// invited is set while the leader may enter the queue to plan, which it was told at invitedAt.
	invited   bool
	invitedAt time.Time
	// planner is the member whose cycle last was there to plan.
	planner *member
	// block is why the last attempt failed, nil if none did.
	block *block
	// failed counts plans that failed in a row. Before retryAt, which is pause after the last of them, none is made.
	failed  int
	retryAt time.Time
	pause   time.Duration
	// pausedAt is when the leader last let others go first in the middle of planning, zero if it does not plan. It
	// rests, until retryAt, if it plans for what a plan has lost, which needs no invitation.
	pausedAt time.Time
	rests    bool
	// declined counts leaders that declined since the last attempt.
	declined int
	// resumes is set while the group has not been tried since its start was cut short: by the end of an earlier
	// scheduler, or by a binding that failed.
	resumes bool
}

// forgetAfter is for how long at least a group was not tried whose pauses begin with the shortest again.
const forgetAfter = 5 * time.Second

// unblock lets the group be tried again, once the pause after its last attempt is over: what users edit must not end
// it.
func (a *attempts) unblock(now time.Time) {
	switch {
	case !now.Before(a.retryAt):
		a.forgive(now)
		a.block = nil
	case a.block != nil:
		a.block.touched = true
	}
}

// forgive forgets the attempts of a group that was not tried for longer than its last pause.
func (a *attempts) forgive(now time.Time) {
	if now.Sub(a.retryAt) >= max(a.pause, forgetAfter) {
		a.failed = 0
	}
}

// fail counts an attempt that failed, after which the group pauses.
func (a *attempts) fail(backoff Backoff, now time.Time) {
	a.failed++
	a.resumes = false
	a.pause = backoff.after(a.failed)
	a.retryAt = now.Add(a.pause)
}

// goOn has a group whose plan is not done, and has paused at that time, tried again, also if it was blocked before.
func (a *attempts) goOn(pausedAt time.Time) {
	a.invited, a.pausedAt, a.declined, a.rests = false, pausedAt, 0, true
	if a.block != nil {
		a.block.touched = true
	}
}

// Reconsider has the group tried again after a change of something that it does not specify itself.
func (l *Ledger) Reconsider(id ID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return Effects{}
	}
	g.attempts.unblock(now)
	return l.settle(g, now)
}

// Block records that the group cannot be placed now, as a scheduling cycle of its leader has found. short holds the
// classes with members that found no node. The group holds nothing afterwards.
func (l *Ledger) Block(id ID, reason obstacle.Reason, short []string, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return Effects{}
	}
	if g.attempts.planner != nil {
		g.attempts.planner.move(isDenied)
	}
	return l.block(g, reason, short, g.attempts.planner != nil && g.attempts.planner == g.leader, backoff, now)
}

// RuleOut records that the group cannot be placed now, as an account of the cluster shows without a cycle. It is not an
// attempt.
func (l *Ledger) RuleOut(id ID, reason obstacle.Reason, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.plan != nil || g.started() || !g.quorum() {
		return
	}
	g.attempts.forgive(now)
	g.attempts.invited, g.attempts.resumes, g.attempts.pausedAt = false, false, time.Time{}
	if g.attempts.block != nil && !g.attempts.block.cycle && g.attempts.block.reason.String() == reason.String() {
		g.attempts.block.touched = false
		return
	}
	g.attempts.block = &block{reason: reason}
	l.changed(id)
}

func (l *Ledger) block(g *group, reason obstacle.Reason, short []string, cycle bool, backoff Backoff,
	now time.Time) Effects {
	g.attempts.fail(backoff, now)
	g.attempts.declined, g.attempts.pausedAt = 0, time.Time{}
	g.attempts.block = &block{reason: reason, cycle: cycle, short: map[string]bool{}}
	for _, class := range short {
		g.attempts.block.short[class] = true
	}
	e := l.release(g, reason)
	return merge(e, l.settle(g, now))
}
