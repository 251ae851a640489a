package gang

import (
	"fmt"
	"time"
)

// settle brings a group in line with its members and returns what follows from that. It is the only place that
// commits a plan, ends it, or activates members that were held.
func (l *Ledger) settle(g *group, now time.Time) Effects {
	var e Effects
	planned := g.plan != nil
	if p := g.plan; p != nil {
		unbound, ready := g.unbound(p)
		switch {
		case unbound == 0 && !p.open:
			g.plan, g.attempts = nil, 0
			delete(l.planned, g.id)
		case p.committed:
		case g.spec() == nil:
			e = l.release(g, fmt.Sprintf("PodGroup %s was deleted", g.id))
		case p.open && g.lead() == nil:
			e = l.release(g, fmt.Sprintf("gang %s lost the members that it needs", g.id))
		case p.open:
		case !g.serves(p):
			e = l.release(g, fmt.Sprintf("gang %s lost a member before all %s had reserved their nodes", g.id, g.spec().Minimum))
		case ready == unbound:
			e.Allow = l.commit(g)
		}
	}
	if g.quorumAt.IsZero() && g.quorum() {
		g.quorumAt = now
	}
	switch present := g.census.begun() > 0; {
	case present:
		g.present = true
	case g.present:
		// The last member that ever had a node has gone: what comes now is a new start.
		g.present, g.placedOnce, g.quorumAt = false, false, time.Time{}
	}
	if g.met() {
		if !g.placedOnce && planned {
			e.Started, e.Waited = true, now.Sub(g.quorumAt)
		}
		g.placedOnce = true
	}
	if g.started() || !g.quorum() {
		g.block, g.invited = nil, false
	}
	if g.started() && !g.met() {
		l.degraded[g.id] = g
	} else {
		delete(l.degraded, g.id)
	}
	e.Activate = append(e.Activate, g.wake()...)
	l.changed(g.id)
	return e
}

// commit lets the members of the plan go.
func (l *Ledger) commit(g *group) []Ref {
	g.plan.committed = true
	delete(l.planned, g.id)
	var allow []Ref
	for _, uid := range g.plan.order {
		if m := g.members[uid]; m != nil && g.plan.node(uid) != "" && m.stage.holds() {
			m.move(isReleased)
			allow = append(allow, m.Ref())
		}
	}
	return allow
}

// release drops the plan and asks back every assignment that was not let go.
func (l *Ledger) release(g *group, reason string) Effects {
	var e Effects
	p := g.plan
	g.plan, g.invited = nil, false
	delete(l.planned, g.id)
	if p == nil || p.committed {
		return e
	}
	for _, uid := range p.order {
		if m := g.members[uid]; m != nil && p.node(uid) != "" && m.stage.holds() {
			e.Reject = append(e.Reject, m.Ref())
			e.Reason = reason
		}
	}
	return e
}

// wake returns the members that were held and need not be any more. The leader of a group that has no plan is not among
// them: whoever invites the group activates it.
func (g *group) wake() []Ref {
	if g.spec() == nil {
		return nil
	}
	var refs []Ref
	take := func(m *member) {
		if m == nil || m.stage != held {
			return
		}
		switch kind, _ := m.turn(); {
		case kind == Hold, kind == Lead && !g.mayPlan():
			return
		}
		m.move(isLet)
		refs = append(refs, m.Ref())
	}
	switch {
	case g.plan != nil && !g.plan.open && !g.plan.committed:
		for _, uid := range g.plan.order {
			take(g.members[uid])
		}
	case g.started():
		for _, m := range g.members {
			take(m)
		}
	case g.quorum():
		take(g.lead())
	}
	return refs
}

// mayPlan reports whether the group's leader may plan now.
func (g *group) mayPlan() bool { return g.invited || (g.plan != nil && g.plan.open) }
