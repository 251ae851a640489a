package gang

import (
	"maps"
	"reflect"

	"github.com/google/go-cmp/cmp"
)

var exactly = cmp.AllowUnexported(census{}, View{})

// recounted is a census of the members from scratch.
func recounted(members map[UID]*member) census {
	c := newCensus()
	for _, m := range members {
		c.count(&m.Member, 1)
	}
	return c
}

// check compares the ledger with a recount from scratch and with what is true.
func (w *world) check() {
	w.calls++
	l := w.l
	for id, g := range l.groups {
		if again := recounted(g.members); !reflect.DeepEqual(again, g.census) {
			w.t.Fatalf("%s: counts (-recount +kept):\n%s", id, cmp.Diff(again, g.census, exactly))
		}
		w.checkPlan(g)
		holding, going := 0, Minimum{Roles: map[string]int{}}
		for _, m := range g.members {
			if m.stage.holds() {
				holding++
			}
			if m.stage == released && w.pods[m.UID].place != asking || m.State == Bound || m.State == Succeeded {
				going.Total++
				going.Roles[m.Role]++
			}
		}
		if holding != g.holding {
			w.t.Fatalf("%s counts %d assignments, its members hold %d", id, g.holding, holding)
		}
		if busy := g.plan != nil || g.attempts.invited || g.degraded() || g.eviction.evicting(); busy != (l.busy[id] == g) {
			w.t.Fatalf("%s is busy: %t, and Expire, Coming and Stragglers take it for the opposite", id, busy)
		}
		if flies := holding > 0 || g.plan != nil; flies == g.eviction.inFlightSince.IsZero() {
			w.t.Fatalf("members of %s are in flight: %t, since %s", id, flies, g.eviction.inFlightSince)
		}
		for _, m := range []*member{g.leader, g.attempts.planner} {
			if m != nil && g.members[m.UID] != m {
				w.t.Fatalf("%s leads %s and is no member", m.UID, id)
			}
		}
		for _, m := range g.members {
			w.visited[m.stage]++
			if m.stage == alone && !g.started() {
				w.t.Fatalf("%s is scheduled as an ordinary pod, and its group has not started", m.UID)
			}
			if before := w.stages[m.UID]; m.stage != released || before == released || before == alone || g.started() {
				continue
			}
			if !g.spec().Minimum.MetBy(going.Total, func(role string) int { return going.Roles[role] }) {
				w.t.Fatalf("%s is let go, the minimum is %s and %+v go or are placed", m.UID, g.spec().Minimum, going)
			}
		}
	}
	w.checkChanged()
	for uid, m := range l.members {
		if w.stages[uid] != m.stage {
			w.t.Logf("stage of %s: %d to %d", uid, w.stages[uid], m.stage)
		}
	}
	clear(w.stages)
	for uid, m := range l.members {
		w.stages[uid] = m.stage
	}
}

// checkChanged checks that groups which look different since the last call are among those that changed.
func (w *world) checkChanged() {
	changed, looks := w.l.Agenda.Changed(), map[ID]View{}
	for _, id := range []ID{g1, g2} {
		looks[id], _ = w.l.View(id)
		if !changed[id] && !reflect.DeepEqual(w.looks[id], looks[id]) {
			w.t.Fatalf("%s looks different, and is not among those that changed (-before +after):\n%s", id,
				cmp.Diff(w.looks[id], looks[id], exactly))
		}
	}
	w.looks = looks
}

// checkPlan checks what must be true of a plan between two calls.
func (w *world) checkPlan(g *group) {
	p := g.plan
	if g.attempts.block != nil && (g.started() || !g.quorum()) {
		w.t.Fatalf("%s is blocked (%s) and needs no plan", g.id, g.attempts.block.reason)
	}
	if p == nil {
		return
	}
	for _, m := range g.members {
		inPlan := p.node(m) != ""
		if p.progress != committed && (m.stage.waits() && !inPlan || m.stage == released && inPlan) {
			w.t.Fatalf("%s is at stage %d while a plan is carried out that has an assignment for it: %t", m.UID, m.stage, inPlan)
		}
	}
	if p.progress != committed && (g.spec() == nil || g.started() || !g.quorum()) {
		w.t.Fatalf("a plan of %s is carried out: started %t, quorum %t", g.id, g.started(), g.quorum())
	}
	all, ready := numbers{roles: map[string]int{}}, numbers{roles: map[string]int{}}
	for m := range p.assignments {
		all.add(m.Role, 1)
		if m.stage.ready() {
			ready.add(m.Role, 1)
		}
		switch {
		case g.members[m.UID] != m || m.State != Pending:
			w.t.Fatalf("%s has an assignment and needs none", m.UID)
		case p.progress == committed && m.stage != released, p.progress == replanning && !m.stage.holds():
			w.t.Fatalf("%s is in a plan at stage %d: progress %d", m.UID, m.stage, p.progress)
		}
	}
	for _, counts := range []struct{ kept, again numbers }{{p.all, all}, {p.ready, ready}} {
		maps.DeleteFunc(counts.kept.roles, func(_ string, n int) bool { return n == 0 })
		if !reflect.DeepEqual(counts.kept, counts.again) {
			w.t.Fatalf("the plan of %s counts %+v, its members are %+v", g.id, counts.kept, counts.again)
		}
	}
	if p.progress != committed && (p.progress == replanning) == serves(g, p) {
		w.t.Fatalf("a plan serves and is planned again, or does neither: progress %d", p.progress)
	}
}

// checkTurn checks that all members that reserve before this one have done so.
func (w *world) checkTurn(p *worldPod) {
	g := w.l.members[p.UID].group
	for _, before := range g.plan.order {
		if before.UID == p.UID || !g.plan.ordered {
			return
		}
		if g.plan.node(before) != "" && !before.stage.ready() {
			w.t.Fatalf("%s follows before %s has reserved", p.UID, before.UID)
		}
	}
}

// compare checks, between two steps, that the ledger knows what is true, and that exactly those assignments are held in
// it that the scheduler holds.
func (w *world) compare() {
	for uid, p := range w.pods {
		m := w.l.members[uid]
		if known := p.member() && !p.deleted; (m != nil) != known {
			w.t.Fatalf("%s is known: %t, is a member: %t", uid, m != nil, known)
		}
		if (p.place == waiting || p.place == written) && !p.rejected && (m == nil || !m.stage.holds()) {
			w.t.Fatalf("%s waits for siblings that it does not have any more", uid)
		}
		if m == nil {
			continue
		}
		if m.State != p.State || m.group.id != p.group {
			w.t.Fatalf("%s is known to be in state %d of %s, is in %d of %s", uid, m.State, m.group.id, p.State, p.group)
		}
		holds := p.place == asking || p.place == waiting || p.place == writing || p.place == written || p.place == binding
		if p.State == Pending && !p.left && m.stage.holds() != holds {
			w.t.Fatalf("%s at place %d is at stage %d", uid, p.place, m.stage)
		}
		if m.stage == unqueued && m.Ours {
			if purpose, _ := m.purpose(); purpose == Alone || purpose == Follow || purpose == Lead && mayPlan(m.group) {
				w.t.Fatalf("%s is held and may go on: purpose %d", uid, purpose)
			}
		}
		switch {
		case p.left:
		case m.stage == unqueued && p.place == active:
			w.t.Fatalf("%s is in the queue and known to be held", uid)
		case m.stage == queued && p.place == parked && !p.barred && !p.foreign:
			w.t.Fatalf("%s is out of the queue and known to be in it", uid)
		}
	}
}
