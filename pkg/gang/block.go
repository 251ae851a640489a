package gang

import "time"

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
	reason Reason
	// touched is set if something has happened since that may help the group.
	touched bool
	// short holds the classes with members that found no node, so that more of them are no news.
	short map[string]bool
	// cycle is set if a scheduling cycle of the leader found it, which then says so itself.
	cycle bool
}

// forgetAfter is for how long at least a group was not tried whose pauses begin with the shortest again.
const forgetAfter = 5 * time.Second

// unblock lets the group be tried again, once the pause after its last attempt is over: what users edit must not end it.
func (g *group) unblock(now time.Time) {
	switch {
	case !now.Before(g.retryAt):
		g.forgive(now)
		g.block = nil
	case g.block != nil:
		g.block.touched = true
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
	g.unblock(now)
	return l.settle(g, now)
}

// forgive forgets the attempts of a group that was not tried for longer than its last pause.
func (g *group) forgive(now time.Time) {
	if now.Sub(g.retryAt) >= max(g.pause, forgetAfter) {
		g.attempts = 0
	}
}

// fail counts a failed attempt, after which the group pauses.
func (g *group) fail(backoff Backoff, now time.Time) {
	g.attempts++
	g.resumes = false
	g.pause = backoff.after(g.attempts)
	g.retryAt = now.Add(g.pause)
}

// Block records that the group cannot be placed now, as a scheduling cycle of its leader has found. short holds the
// classes with members that found no node. The group holds nothing afterwards.
func (l *Ledger) Block(id ID, reason Reason, short []string, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return Effects{}
	}
	if g.planner != nil {
		g.planner.move(isDenied)
	}
	return l.block(g, reason, short, g.planner != nil && g.planner == g.leader, backoff, now)
}

// RuleOut records that the group cannot be placed now, as an account of the cluster shows without a cycle. It is not an
// attempt.
func (l *Ledger) RuleOut(id ID, reason Reason, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.plan != nil || g.started() || !g.quorum() {
		return
	}
	g.forgive(now)
	g.invited, g.resumes, g.pausedAt = false, false, time.Time{}
	if g.block != nil && !g.block.cycle && g.block.reason.String() == reason.String() {
		g.block.touched = false
		return
	}
	g.block = &block{reason: reason}
	l.changed(id)
}

func (l *Ledger) block(g *group, reason Reason, short []string, cycle bool, backoff Backoff, now time.Time) Effects {
	g.fail(backoff, now)
	g.declined, g.pausedAt = 0, time.Time{}
	g.block = &block{reason: reason, cycle: cycle, short: map[string]bool{}}
	for _, class := range short {
		g.block.short[class] = true
	}
	e := l.release(g, reason)
	return merge(e, l.settle(g, now))
}

// Blocked reports whether the group of the member did not fit when it was last tried, and is not being tried again.
func (l *Ledger) Blocked(uid UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	return m != nil && m.group.block != nil && !m.group.invited
}
