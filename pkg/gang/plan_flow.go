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
	// stragglersGrace is how long a plan waits for members that the minimum does not need, once all that it needs are
	// ready.
	stragglersGrace = time.Second
)

// planFlow says who of a plan was let into the queue.
type planFlow struct {
	// next is the index in the plan's order of the first that was not let in yet or, of a plan whose members reserve in
	// order, of the first whose turn does not come before others had theirs.
	next int
	// under way are those let in last of a plan that needs no order, and letAt is when that was; emptyAt is when all
	// that may be let in had reserved.
	underway       []*member
	letAt, emptyAt time.Time
	// toAllow holds the members of a plan that is carried out that were not told to go yet; allowedAt is when some were
	// told last.
	toAllow   []Ref
	allowedAt time.Time
}

// done reports whether all members of the plan have been let in.
func (f *planFlow) done(p *plan) bool { return f.next == len(p.order) }

// allowMore returns the members to be told to go, of a large plan a few at a time: all at once would keep the API
// server from binding the pods of others.
func (p *plan) allowMore(now time.Time) []Ref {
	f := &p.flow
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
	return allow
}

// letIn returns the members that the plan lets into the queue when it is made or has lost one.
func (p *plan) letIn() []*member {
	switch {
	case p.open || p.committed:
		return nil
	case p.ordered:
		return p.letInOrder()
	case p.flow.next == 0:
		return p.letNext()
	}
	return nil
}

// letMore returns the next members to be let in, a moment after the last of those before them has reserved.
func (p *plan) letMore(now time.Time) []*member {
	f := &p.flow
	switch {
	case p.open || p.committed:
		return nil
	case p.ordered:
		p.passOn()
		if f.done(p) || p.next < f.next {
			f.emptyAt = time.Time{}
			return nil
		}
		if !f.rested(now) {
			return nil
		}
		f.next = min(p.next+window, len(p.order))
		return p.letInOrder()
	}
	f.underway = slices.DeleteFunc(f.underway, p.passed)
	if f.letAt.IsZero() {
		f.letAt = now
	}
	switch {
	case now.Sub(f.letAt) >= flowPatience:
		f.underway, f.emptyAt = nil, time.Time{}
		if f.done(p) {
			// A member that was let in and is held all the same.
			f.next = 0
		}
	case len(f.underway) > 0:
		f.emptyAt = time.Time{}
		return nil
	case !f.rested(now):
		return nil
	}
	f.letAt = now
	return p.letNext()
}

// rested reports whether all that were let in had reserved a breath ago, and begins to count again if so.
func (f *planFlow) rested(now time.Time) bool {
	switch {
	case f.emptyAt.IsZero():
		f.emptyAt = now
		return false
	case now.Sub(f.emptyAt) < Breath:
		return false
	}
	f.emptyAt = time.Time{}
	return true
}

// letNext lets the next members of a plan in, until a window is under way.
func (p *plan) letNext() []*member {
	f, before := &p.flow, len(p.flow.underway)
	for f.next < len(p.order) && len(f.underway) < window {
		m := p.order[f.next]
		f.next++
		if !p.passed(m) {
			f.underway = append(f.underway, m)
		}
	}
	return f.underway[before:]
}

// letInOrder lets in the first member of a window that has not reserved. Those after it follow one by one.
func (p *plan) letInOrder() (in []*member) {
	f := &p.flow
	if f.next == 0 {
		f.next = min(window, len(p.order))
	}
	for _, m := range p.order[p.next:max(p.next, f.next)] {
		if p.node(m) != "" {
			in = append(in, m)
		}
		if !p.passed(m) {
			break
		}
	}
	return in
}
