package gang

import (
	"math"
	"time"
)

// met reports whether the minimum is placed.
func (g *group) met() bool { s := g.spec(); return s != nil && g.census.met(s.Minimum) }

// quorum reports whether enough members exist to start.
func (g *group) quorum() bool { s := g.spec(); return s != nil && g.census.quorum(s.Minimum) }

// running reports whether a run of the group goes on: a member has a node, or enough have succeeded that the minimum
// needs no more. What else has ended is left over from a run that is over: a controller that is suspended and resumed,
// or all of whose pods have failed, starts whole again.
func (g *group) running() bool { return g.census.states[Bound] > 0 || g.met() }

// started reports whether the group is past the start of the run that goes on. From then on members are placed one by
// one, because to wait for a minimum again would lock out the replacement of one member forever where another is never
// replaced.
func (g *group) started() bool { return g.run.hadMinimum() && g.running() }

// degraded reports whether the group has started and has lost members since. It has not where the minimum was raised
// and the members for that have yet to be placed.
func (g *group) degraded() bool {
	return g.started() && !g.met() && !g.census.met(g.needed())
}

// needed is what has to be placed for the group not to count as degraded: the minimum, but no more of it than was
// placed before.
func (g *group) needed() Minimum {
	switch s := g.spec(); {
	case s == nil:
		return Minimum{Total: math.MaxInt}
	case g.run.reached == nil:
		return s.Minimum
	default:
		return g.run.reached.within(s.Minimum)
	}
}

// Past is what is known of a group from an earlier scheduler.
type Past uint8

const (
	// NotStarted means that the minimum was not placed.
	NotStarted Past = iota
	// HadStarted means that it was.
	HadStarted
	// HadGrown means that it was, and has been raised since.
	HadGrown
)

// Recall records whether the group had started when a scheduler last wrote its status, which may be known before any
// member is. Only the first such word counts: later ones repeat what this ledger said. Undefine forgets a group that
// never shows.
func (l *Ledger) Recall(id ID, past Past, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil && past != NotStarted {
		g = l.open(id)
	}
	if g == nil || g.run.recalled {
		return Effects{}
	}
	g.run.recalled = true
	if past == NotStarted || !g.run.reach(isRecalled) {
		return Effects{}
	}
	if past == HadGrown {
		g.run.reached = &Minimum{}
	}
	return l.settle(g, now)
}
