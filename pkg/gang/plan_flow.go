package gang

import (
	"slices"
	"time"
)

const (
	// window is how many members of a plan are let into the queue at a time. They come before all others there, who would wait
	// for all of a large group otherwise.
	window = 64
	// Breath is the pause after which the next members are let in. Others are scheduled meanwhile.
	Breath = 50 * time.Millisecond
	// flowPatience is how long members of a plan are waited for before more are let in: another plugin may keep them back.
	flowPatience = time.Second
)

// planFlow says who of a plan whose members need not reserve in order was let into the queue.
type planFlow struct {
	// next is the index in the plan's order of the first that was not let in yet.
	next int
	// under way are those let in last; letAt is when that was, and emptyAt when all of them had reserved.
	underway       []UID
	letAt, emptyAt time.Time
}

// done reports whether all members of the plan have been let in.
func (f *planFlow) done(p *plan) bool { return p.ordered || f.next == len(p.order) }

// letFirst lets the first members of a plan in; letMore lets those in that come after them.
func (g *group) letFirst(take func(*member)) {
	if g.plan.flow.next == 0 {
		g.letNext(take)
	}
}

func (g *group) letNext(take func(*member)) {
	p, f := g.plan, &g.plan.flow
	for f.next < len(p.order) && len(f.underway) < window {
		uid := p.order[f.next]
		f.next++
		if !g.passed(p, uid) {
			take(g.members[uid])
			f.underway = append(f.underway, uid)
		}
	}
}

// letMore lets the next members of a plan in, a moment after the last of those before them has reserved.
func (g *group) letMore(now time.Time) []Ref {
	p := g.plan
	if p.open || p.committed || p.ordered || g.spec() == nil {
		return nil
	}
	f := &p.flow
	f.underway = slices.DeleteFunc(f.underway, func(uid UID) bool { return g.passed(p, uid) })
	if f.letAt.IsZero() {
		f.letAt = now
	}
	switch {
	case now.Sub(f.letAt) >= flowPatience:
		f.underway = nil
		if f.done(p) {
			// Whoever was let in and is held all the same.
			f.next = 0
		}
	case len(f.underway) > 0:
		f.emptyAt = time.Time{}
		return nil
	case f.emptyAt.IsZero():
		f.emptyAt = now
		return nil
	case now.Sub(f.emptyAt) < Breath:
		return nil
	}
	f.letAt, f.emptyAt = now, time.Time{}
	var refs []Ref
	g.letNext(func(m *member) {
		if g.mayLet(m) {
			m.move(isLet)
			refs = append(refs, m.Ref())
		}
	})
	return refs
}

// Flowing reports whether members of a plan wait to be let into the queue after others of it.
func (l *Ledger) Flowing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.planned {
		if p := g.plan; !p.open && !p.flow.done(p) {
			return true
		}
	}
	return false
}

// Pause records that the leader has planned for a while and lets others go first before it goes on, for at least rest.
func (l *Ledger) Pause(uid UID, rest time.Duration, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	g := m.group
	m.move(isDenied)
	g.invited, g.pausedAt = false, now
	if until := now.Add(rest); until.After(g.retryAt) {
		g.retryAt = until
	}
	return l.settle(g, now)
}
