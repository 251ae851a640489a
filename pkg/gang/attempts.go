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

// planned ends the attempts that a plan was made of.
func (a *attempts) planned() {
	a.block, a.invited, a.declined = nil, false, 0
}

// ruleOut takes note of why the group need not be tried, and reports whether that is news.
func (a *attempts) ruleOut(reason obstacle.Reason, now time.Time) bool {
	a.forgive(now)
	a.invited, a.resumes = false, false
	if a.block != nil && !a.block.cycle && a.block.reason.String() == reason.String() {
		a.block.touched = false
		return false
	}
	a.block = &block{reason: reason}
	return true
}

// helped reports whether a group that did not fit may fit because of m, which was known before, if at all, as known: it
// does not need a node any more, it asks for something else now, or it is one more of a class whose members all found a
// place.
func (b *block) helped(known *member, m *Member) bool {
	switch waited := known != nil && known.State == Pending; {
	case m.State == Bound || m.State == Succeeded:
		return known == nil || known.State.rank() < Bound.rank()
	case m.State != Pending:
		return false
	case waited:
		return known.Class != m.Class || known.Role != m.Role
	}
	return !b.short[m.Class]
}

// block ends the group's plan and attempt. cycle is set if a cycle of the leader tells the reason.
func (g *group) block(reason obstacle.Reason, short []string, cycle bool, backoff Backoff, now time.Time) Effects {
	g.attempts.fail(backoff, now)
	g.attempts.declined = 0
	g.attempts.block = &block{reason: reason, cycle: cycle, short: map[string]bool{}}
	for _, class := range short {
		g.attempts.block.short[class] = true
	}
	e := g.release(reason)
	return merge(e, g.settle(now))
}

// invite lets the leader enter the queue to plan.
func (g *group) invite(now time.Time) Effects {
	g.attempts.invited, g.attempts.invitedAt = true, now
	if g.attempts.block != nil {
		g.attempts.block.touched = false
	}
	g.lists.awaited[g.id] = g
	return g.settle(now)
}
