package gang

import (
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
)

// Backoff bounds the pause between two attempts to plan a group that does not fit.
type Backoff struct{ Initial, Max time.Duration }

// after is the pause after a number of failures in a row. There is none after the first: a group is tried again only
// when something has changed, and should not lose what became free to a later group that happens to be tried at that
// moment.
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
	// short holds the classes with members that found no node: more of them do not help.
	short map[string]bool
	// cycle is set if a scheduling cycle of the leader found it and reports it itself.
	cycle bool
}

// attempts is what is known of plans for a group.
type attempts struct {
	// invited is set while the leader may enter the queue to plan, since invitedAt. came is set when it has come.
	invited, came bool
	invitedAt     time.Time
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

// forgetAfter is the least time without an attempt after which pauses begin with the shortest again.
const forgetAfter = 5 * time.Second

// unblock lets the group be tried again when the pause after its last attempt is over. An edit by a user does not end
// the pause.
func (a *attempts) unblock(now time.Time) {
	switch {
	case !now.Before(a.retryAt):
		a.forgive(now)
		a.block = nil
	case a.block != nil:
		a.block.touched = true
	}
}

// forgive forgets failed attempts if none was made for longer than the last pause.
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

// ruleOut records why the group need not be tried, and reports whether that is news.
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

// helped reports whether a group that did not fit may fit now that m is observed: it needs no node any more, it asks
// for something else, or it is one more of a class all of whose members found a node. known is the member as it was
// before, or nil.
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

// block ends the group's plan and attempt. cycle is set if a cycle of the leader reports the reason.
func (g *group) block(reason obstacle.Reason, short []string, cycle bool, backoff Backoff, now time.Time) {
	g.attempts.fail(backoff, now)
	g.attempts.declined = 0
	g.attempts.block = &block{reason: reason, cycle: cycle, short: map[string]bool{}}
	for _, class := range short {
		g.attempts.block.short[class] = true
	}
	g.release(reason)
	g.settle(now)
}

// invite lets the leader enter the queue to plan.
func (g *group) invite(now time.Time) {
	g.attempts.invited, g.attempts.came, g.attempts.invitedAt = true, false, now
	if g.attempts.block != nil {
		g.attempts.block.touched = false
	}
	g.settle(now)
}

// maxDeclined is how many leaders in a row may decline before the group is blocked.
const maxDeclined = 3

// maxSetbacks is how many assignments in a row may turn out wrong before the group is blocked.
const maxSetbacks = 3

// bindingFailed handles a member that was let go and could not be bound. The scheduling queue itself retries a member
// that was scheduled as an ordinary pod. A member of a plan is activated if the group has started. Otherwise the group
// pauses before it is planned again, if it still needs the member when the others are bound. While only some are, the
// capacity counts as lost, so that it is kept: if others took it, the group could stay bound in part.
func (g *group) bindingFailed(m *member, backoff Backoff, now time.Time) {
	switch p := g.plan; {
	case p.node(m) == "" && g.started():
		m.move(isLet)
	case p != nil && p.failure == nil && !g.started():
		g.attempts.fail(backoff, now)
		p.failure = &block{reason: obstacle.Obstacle{Cause: obstacle.NotBound, Group: g.id, Pod: m.Name, Node: m.node}}
	}
	begun := !g.met() && g.begun()
	g.attempts.resumes = begun && !g.started()
	if begun && m.node != "" {
		e := &g.store.effects
		e.Lost = append(e.Lost, Loss{Group: g.id, Member: m.Ref, Node: m.node, Starting: g.attempts.resumes})
	}
	g.plan.drop(m)
	g.settle(now)
}

// refuse takes the member's assignment out of the plan. If the other members are not enough, siblings keep the
// assignments that they hold, and the member leads the planning of the rest, without this node for its class, unless
// that has failed too often.
func (g *group) refuse(m *member, why obstacle.Reason, backoff Backoff, now time.Time) {
	p := g.plan
	refusal := Refusal{Class: m.Class, Node: p.node(m)}
	again := p.refused[refusal]
	if p.refused == nil {
		p.refused = map[Refusal]bool{}
	}
	p.refused[refusal] = true
	p.drop(m)
	p.setbacks++
	if !serves(g, p) {
		g.leader = m
		if again || p.setbacks > maxSetbacks {
			g.block(why, nil, true, backoff, now)
			return
		}
		for sibling := range p.assignments {
			if !sibling.stage.holds() {
				p.drop(sibling)
			}
		}
		p.progress = replanning
	}
	g.settle(now)
}

// planExpired ends the plan when its time is over; ready of all members were ready.
func (g *group) planExpired(all, ready int, backoff Backoff, now time.Time) {
	if g.plan.progress != replanning && servesReady(g, g.plan) {
		g.commit()
		g.settle(now)
		return
	}
	for m := range g.plan.assignments {
		m.declined = !m.stage.holds()
	}
	why := obstacle.Obstacle{Cause: obstacle.TimedOut, Group: g.id, Have: ready, Need: all, Timeout: g.spec().Timeout}
	g.block(why, nil, false, backoff, now)
}
