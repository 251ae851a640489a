package gang

import (
	"slices"
	"time"
)

const (
	// window is how many members of a plan are let into the queue at a time. They come before all others there, who
	// would wait for all of a large group otherwise.
	window = 64
	// Breath is the pause after which the next members are let in. Others are scheduled meanwhile.
	Breath = 50 * time.Millisecond
	// flowPatience is how long members of a plan are waited for before more are let in: another plugin may keep them back.
	flowPatience = time.Second
	// bindWindow is how many members of a plan of more than a window are being bound at a time.
	bindWindow = 16
	// allowAllBefore is how long before the end of their time all members are let go.
	allowAllBefore = 5 * time.Second
)

// planFlow says who of a plan was let into the queue.
type planFlow struct {
	// next is the index in the plan's order of the first that was not let in yet or, of a plan whose members reserve in
	// order, of the first whose turn does not come before others had theirs.
	next int
	// under way are those let in last of a plan that needs no order, and letAt is when that was; emptyAt is when all
	// that may be let in had reserved.
	underway       []UID
	letAt, emptyAt time.Time
	// toAllow holds the members of a plan that is carried out that were not told to go yet; allowedAt is when some were
	// told last.
	toAllow   []Ref
	allowedAt time.Time
}

// allowMore returns the members to be told to go, of a large plan a few at a time: all at once would keep the API
// server from binding the pods of others.
func (l *Ledger) allowMore(g *group, now time.Time) []Ref {
	p, f := g.plan, &g.plan.flow
	width := window
	if len(p.order) > window {
		width = bindWindow
	}
	room := width - (len(p.assignments) - len(f.toAllow))
	switch {
	case now.Add(allowAllBefore).After(p.deadline):
		// The framework does not let them wait for longer.
		room = len(f.toAllow)
	case now.Sub(f.allowedAt) >= flowPatience:
		room = width
	}
	if len(f.toAllow) == 0 || room < min(width/2, len(f.toAllow)) {
		return nil
	}
	n := min(room, len(f.toAllow))
	allow := f.toAllow[:n:n]
	f.toAllow, f.allowedAt = f.toAllow[n:], now
	if len(f.toAllow) > 0 {
		l.binding[g.id] = g
	}
	return allow
}

// done reports whether all members of the plan have been let in.
func (f *planFlow) done(p *plan) bool { return f.next == len(p.order) }

// letNext lets the next members of a plan in, until a window is under way.
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

// letInOrder lets in the first member of a window that has not reserved. Those after it follow one by one.
func (g *group) letInOrder(take func(*member)) {
	p, f := g.plan, &g.plan.flow
	if f.next == 0 {
		f.next = min(window, len(p.order))
	}
	for _, uid := range p.order[p.next:max(p.next, f.next)] {
		if p.node(uid) != "" {
			take(g.members[uid])
		}
		if !g.passed(p, uid) {
			break
		}
	}
}

// letMore lets the next members of a plan in, a moment after the last of those before them has reserved.
func (g *group) letMore(now time.Time) []Ref {
	p := g.plan
	switch {
	case p.open || p.committed || g.spec() == nil:
		return nil
	case p.ordered:
		return g.letMoreInOrder(now)
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
			// A member that was let in and is held all the same.
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
	g.letNext(g.letting(&refs))
	return refs
}

func (g *group) letMoreInOrder(now time.Time) []Ref {
	p, f := g.plan, &g.plan.flow
	g.passOn(p)
	switch {
	case f.done(p) || p.next < f.next:
		f.emptyAt = time.Time{}
		return nil
	case f.emptyAt.IsZero():
		f.emptyAt = now
		return nil
	case now.Sub(f.emptyAt) < Breath:
		return nil
	}
	f.emptyAt, f.next = time.Time{}, min(p.next+window, len(p.order))
	var refs []Ref
	g.letInOrder(g.letting(&refs))
	return refs
}

// letting lets members in that were held and need not be any more, and adds them to refs.
func (g *group) letting(refs *[]Ref) func(*member) {
	return func(m *member) {
		if g.mayLet(m) {
			m.move(isLet)
			*refs = append(*refs, m.Ref())
		}
	}
}

// Flowing reports whether members of a plan wait to be let into the queue, or to be let go, after others of it, or a
// leader to go on.
func (l *Ledger) Flowing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.binding) > 0 {
		return true
	}
	for _, g := range l.planned {
		if p := g.plan; (p.open && g.attempts.rests) || (!p.open && !p.flow.done(p)) {
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
	g.attempts.goOn(now)
	if until := now.Add(rest); until.After(g.attempts.retryAt) {
		g.attempts.retryAt = until
	}
	return l.settle(g, now)
}

// Abandon records that the plan of the group has come to nothing because the group changed. It begins again after a
// pause.
func (l *Ledger) Abandon(uid UID, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	g := m.group
	m.move(isDenied)
	g.attempts.fail(backoff, now)
	g.attempts.goOn(time.Time{})
	return l.settle(g, now)
}
