package gang

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang/obstacle"
)

// happen does one random thing at the API server.
func (w *world) happen() {
	exists := w.all(func(p *worldPod) bool { return !p.deleted })
	switch w.draw(14, "what happens") {
	case 0, 1, 2, 3:
		w.create()
	case 4:
		if p := w.some(w.all(func(p *worldPod) bool { return p.State == Gated && !p.deleted })); p != nil {
			p.State = Pending
			w.observe(p)
			w.enqueue(p)
		}
	case 5:
		if p := w.some(exists); p != nil {
			w.end(p, []State{Succeeded, Failed, Terminating}[w.draw(3, "end")])
		}
	case 6:
		if p := w.some(exists); p != nil {
			w.remove(p)
		}
	case 7:
		if p := w.some(exists); p != nil {
			w.relabel(p, []ID{{}, g1, g2}[w.draw(3, "label")])
		}
	case 8:
		// What the informers tell late means nothing.
		if p := w.some(w.all(func(p *worldPod) bool {
			return p.State != Pending && p.State != Gated && p.member() &&
				!p.deleted
		})); p != nil {
			late := p.Member
			late.State = Pending
			if e := w.l.Observe(p.group, late, w.now); !e.Empty() {
				w.t.Fatalf("a late observation of %s has effects %+v", p.UID, e)
			}
		}
	case 9, 10:
		id := []ID{g1, g1, g1, g2}[w.draw(4, "group")]
		w.changes++
		if w.draw(8, "PodGroup is deleted") == 0 {
			w.carryOut(w.l.Undefine(id, Object, w.now))
			break
		}
		w.define(id)
	case 11:
		w.changes++
		w.carryOut(w.l.Recall(g1, Past(w.draw(3, "past")), w.now))
	case 12:
		if p := w.some(w.all(func(p *worldPod) bool { return !p.Ours && p.State == Pending && !p.deleted })); p != nil {
			p.State, p.Node, p.place = Bound, "n-foreign", settledDown
			w.observe(p)
		}
	case 13:
		if p := w.some(exists); p != nil {
			if p.barred = !p.barred; !p.barred && p.place == parked {
				w.enqueue(p)
			}
		}
	}
}

// create makes a pod, most often a member that can be placed.
func (w *world) create() {
	i := w.next
	w.next++
	p := &worldPod{Member: pending(i), group: g1}
	p.Class, p.Role = []string{"a", "b"}[w.draw(2, "class")], w.needs.roles[w.draw(len(w.needs.roles), "role")]
	if w.draw(6, "gated") == 0 {
		p.State = Gated
	}
	if w.draw(6, "group") == 0 {
		p.group = g2
	}
	p.Ours = w.draw(10, "of another scheduler") != 0
	w.pods[p.UID] = p
	w.observe(p)
	if p.State == Pending {
		w.enqueue(p)
	}
}

// define makes or edits a PodGroup.
func (w *world) define(id ID) {
	s := Spec{Minimum: Minimum{Total: 1 + w.draw(4, "minimum")}, Created: t0, UID: "g", Timeout: 30 * time.Second}
	switch fixed := w.needs.minimum; {
	case fixed.Total > 0:
		s.Minimum = fixed
	case w.draw(3, "with roles") == 0:
		s.Minimum.Roles = map[string]int{"leader": 1}
	}
	w.carryOut(w.l.Define(id, Object, s, w.now))
}

// end lets a pod finish, fail or be deleted with a grace.
func (w *world) end(p *worldPod, s State) {
	if s.rank() <= p.State.rank() {
		return
	}
	w.t.Logf("end %s: %d", p.UID, s)
	p.State = s
	if p.place == parked || p.place == active {
		p.place = settledDown
	}
	w.observe(p)
}

// remove deletes a pod: the scheduler turns it away if it waits in Permit.
func (w *world) remove(p *worldPod) {
	w.t.Logf("remove %s", p.UID)
	w.changes++
	p.deleted = true
	if p.member() {
		w.carryOut(w.l.Forget(p.UID, w.now))
	}
	switch p.place {
	case parked, active:
		p.place = settledDown
	case asking, waiting:
		p.rejected = true
	}
}

// relabel makes a pod a member of another group, or of none.
func (w *world) relabel(p *worldPod, id ID) {
	if p.group == id {
		return
	}
	w.t.Logf("relabel %s to %s", p.UID, id)
	was := p.group
	p.group = id
	p.left = p.place != parked && p.place != settledDown
	w.changes++
	switch {
	case id != ID{}:
		w.observe(p)
	case was != ID{}:
		w.carryOut(w.l.Forget(p.UID, w.now))
	}
	if p.place == parked && p.State == Pending && (was == ID{}) {
		w.enqueue(p)
	}
}

// step does one random thing.
func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.draw(4000, "ms")) * time.Millisecond)
	switch w.draw(21, "step") {
	case 0, 1:
		w.happen()
	case 2, 3, 4, 5, 6, 7, 8, 9, 10:
		if p := w.some(w.at(active)); p != nil {
			w.cycle(p)
		}
	case 11, 12, 13:
		if p := w.some(w.at(asking, waiting, writing, written, binding)); p != nil {
			w.finish(p)
		}
	case 14:
		w.timers()
	case 15, 16, 17:
		w.wake()
	case 18:
		w.carryOut(w.l.Agenda.Expire(testBackoff, w.now))
	case 19:
		// The queue tries pods on the off chance, and the account of the cluster rules groups out.
		if p := w.some(w.at(parked)); p != nil && p.State == Pending {
			w.enqueue(p)
		}
		switch w.draw(4, "ruled out or in") {
		case 0:
			w.l.Agenda.RuleOut(g1, obstacle.Text("no room"), w.now)
		case 1:
			w.carryOut(w.l.Agenda.Invite(g1, w.now))
		}
	case 20:
		w.evict()
	}
	w.compare()
}

// evict lets a more important pod evict a group as a whole. The requests for some pods fail.
func (w *world) evict() {
	toll := EvictionImpact{Group: g1, Whole: true}
	bound := w.all(func(p *worldPod) bool { return p.group == g1 && p.State == Bound && !p.deleted })
	toll.Bound = len(bound)
	if len(bound) == 0 || !w.l.Evictions.Evict([]EvictionImpact{toll}, w.now.Add(30*time.Second), w.now) {
		return
	}
	w.evicted++
	for _, p := range w.at(asking, waiting, writing, written, binding) {
		if p.group == g1 && p.State == Pending && !p.left && !p.deleted &&
			w.now.Sub(w.l.groups[g1].eviction.inFlightSince) < longestFlight {
			w.t.Fatalf("the group is evicted while %s is on its way", p.UID)
		}
	}
	for _, p := range bound {
		if w.draw(8, "the request fails") != 0 {
			w.end(p, Terminating)
		}
	}
	w.check()
}

// timers ends the waits of pods whose time is over, whatever the ledger knows of that.
func (w *world) timers() {
	for _, p := range w.at(asking, waiting, written) {
		if !w.now.Before(p.deadline) {
			p.rejected = true
		}
	}
}

// wake invites the groups that may be planned.
func (w *world) wake() {
	for _, id := range []ID{g1, g2} {
		if waits, ok := w.l.Agenda.Waiting(id); ok && !w.now.Before(waits.RetryAt) {
			w.carryOut(w.l.Agenda.Invite(id, w.now))
		}
	}
}

func TestLedgerAgainstModel(t *testing.T) {
	t.Parallel()
	// What was seen in all runs together: in a short one, something may never happen.
	var mu sync.Mutex
	visited, evicted := map[stage]int{}, 0
	t.Cleanup(func() {
		for s := range stages {
			if visited[s] == 0 {
				t.Errorf("no member was ever at stage %d: the model does not do what it is for", s)
			}
		}
		if evicted == 0 {
			t.Error("no group was ever evicted: the model does not do what it is for")
		}
	})
	for i := range 5 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			total := 0
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(t)
				w.salt = uint64(i)
				w.define(g1)
				for range 4 {
					w.create()
				}
				for range rapid.IntRange(20, 150).Draw(t, "steps") {
					w.step()
					total++
				}
				w.drain()
				mu.Lock()
				defer mu.Unlock()
				for s, n := range w.visited {
					visited[s] += n
				}
				evicted += w.evicted
			})
			t.Logf("%d steps", total)
		})
	}
}

// drain lets time pass without further surprises and with room for all. Nothing comes to the queue then but what the
// ledger activates, what other plugins had kept out, and what the scheduler tries again after an error.
func (w *world) drain() {
	w.calm = true
	for _, p := range w.pods {
		kept := p.barred || p.foreign
		if p.barred = false; kept && p.place == parked {
			w.enqueue(p)
		}
	}
	for range 40 {
		w.now = w.now.Add(11 * time.Second)
		w.timers()
		w.carryOut(w.l.Agenda.Expire(testBackoff, w.now))
		w.wake()
		for len(w.at(active, asking, waiting, writing, written, binding)) > 0 {
			before := w.calls
			for _, p := range w.at(active) {
				w.cycle(p)
			}
			for _, p := range w.at(asking, waiting, writing, written, binding) {
				w.finish(p)
			}
			if w.calls == before {
				break
			}
		}
		w.compare()
	}
	if stuck := w.at(asking, waiting, writing, written, binding); len(stuck) > 0 {
		w.t.Fatalf("%s is never tried at place %d", stuck[0].UID, stuck[0].place)
	}
	for _, p := range w.all(func(p *worldPod) bool { return !p.deleted && p.State == Pending && p.Ours }) {
		if !p.member() {
			w.t.Fatalf("%s is no member and was not placed: place %d", p.UID, p.place)
		}
		g := w.l.groups[p.group]
		foreign := 0
		for _, m := range g.members {
			if !m.Ours && m.State == Pending {
				foreign++
			}
		}
		switch _, told := w.l.Held(p.group)[p.Ref]; {
		case foreign > 0 && !g.started():
			// The minimum may need what another scheduler has not placed.
		case told && w.waitsForOthers(p):
			// What comes free is for members that the minimum needs and that do not exist.
		case g.spec() != nil && (g.started() || g.quorum()):
			w.t.Fatalf("%s is not placed at the end, with room for all: stage %d, started %t, block %+v, plan %+v", p.UID,
				g.members[p.UID].stage,
				g.started(), g.attempts.block, g.plan)
		case p.place != parked:
			w.t.Fatalf("%s of an incomplete gang is at place %d", p.UID, p.place)
		case !told:
			w.t.Fatalf("%s is not told why it is held", p.UID)
		}
	}
}

// waitsForOthers reports whether members of the started group have a node, not enough of them by its minimum, and
// enough of the role of the pod.
func (w *world) waitsForOthers(p *worldPod) bool {
	g := w.l.groups[p.group]
	if g.spec() == nil || !g.started() {
		return false
	}
	total, roles := 0, map[string]int{}
	for _, o := range w.all(func(o *worldPod) bool { return o.group == p.group && !o.deleted }) {
		if o.State == Bound || o.State == Succeeded {
			total++
			roles[o.Role]++
		}
	}
	minimum := g.spec().Minimum
	return !minimum.MetBy(total, func(role string) int { return roles[role] }) && minimum.Roles[p.Role] <= roles[p.Role]
}
