package gang

import (
	"fmt"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
)

// interrupt lets something happen at the API server in the middle of a cycle.
func (w *world) interrupt() {
	if w.goesWrong(12, "interrupt") {
		w.happen()
	}
}

// cycle runs the scheduling cycle of a pod.
func (w *world) cycle(p *worldPod) {
	p.place = cycling
	w.interrupt()
	if !p.member() {
		p.place = binding
		return
	}
	if w.goesWrong(12, "PreFilter of another plugin") {
		w.postFilter(p)
		return
	}
	cycle := w.l.Cycles.Of(p.UID)
	w.check()
	w.t.Logf("cycle of %s: %d", p.UID, cycle.Purpose)
	node := cycle.Node
	switch cycle.Purpose {
	case Wait:
		if cycle.Why == nil {
			w.t.Fatalf("%s is held without a reason", p.UID)
		}
		w.land(p)
		return
	case Alone:
		if w.goesWrong(3, "an ordinary pod fits nowhere") {
			w.postFilter(p)
			return
		}
		node = "n-free"
	case Lead:
		var ok bool
		if node, ok = w.lead(p, cycle.Demand); !ok {
			w.land(p)
			return
		}
		fallthrough
	case Follow:
		w.checkTurn(p)
		if w.goesWrong(6, "the planned node does not take the pod") {
			w.postFilter(p)
			return
		}
	}
	w.reserve(p, node, cycle.Purpose == Alone)
}

// postFilter is what the plugin does about a pod that fits nowhere.
func (w *world) postFilter(p *worldPod) {
	cycle := w.l.Cycles.Of(p.UID)
	w.check()
	w.t.Logf("%s fits nowhere: %d", p.UID, cycle.Purpose)
	switch {
	case cycle.Purpose == Follow:
		w.carryOut(w.l.Cycles.Broken(p.UID, obstacle.Text("does not fit"), testBackoff, w.now))
	case cycle.Purpose == Lead && !w.l.Cycles.Standing(p.UID).Blocked:
		w.carryOut(w.l.Cycles.Decline(p.UID, obstacle.Text("turned away"), testBackoff, w.now))
	case cycle.Purpose == Alone:
		p.foreign = true
	}
	w.land(p)
}

// lead plans for the group of the pod and returns the pod's node, if it can go on.
func (w *world) lead(p *worldPod, demand Demand) (node string, ok bool) {
	before := w.changes
	w.interrupt()
	refused := w.l.Refused(p.group)
	var proposal Proposal
	roles, short := map[string]int{}, map[string]bool{}
	for _, m := range demand.Members {
		k := 0
		for refused[Refusal{Class: m.Class, Node: fmt.Sprint("n", k)}] {
			k++
		}
		if !w.calm && (k > 3 || w.draw(5, "a member fits nowhere") == 0) {
			short[m.Class] = true
			continue
		}
		roles[m.Role]++
		proposal.Assignments = append(proposal.Assignments, Assignment{UID: m.UID, Node: fmt.Sprint("n", k)})
	}
	if !demand.Need.MetBy(len(proposal.Assignments), func(role string) int { return roles[role] }) {
		w.carryOut(w.l.Cycles.Block(p.group, obstacle.Text("does not fit"), []string{"a"}, testBackoff, w.now))
		if again := w.l.Cycles.Of(p.UID); before == w.changes && w.l.groups[p.group].holding == 0 &&
			(again.Purpose != Lead || !w.l.Cycles.Standing(p.UID).Blocked) {
			w.t.Fatalf("%s does not lead in the cycle that has found its group not to fit: %+v", p.UID, again)
		}
		return "", false
	}
	if proposal.Ordered = w.draw(3, "ordered") == 0; proposal.Ordered {
		for i := range proposal.Assignments {
			proposal.Assignments[i].First = w.draw(3, "first") == 0
		}
	}
	e, serves, proceed := w.l.Cycles.Propose(p.UID, proposal, w.now)
	if before == w.changes && !serves {
		w.t.Fatalf("a plan that serves was refused: need %s of %d members", demand.Need, len(demand.Members))
	}
	w.carryOut(e)
	for _, a := range proposal.Assignments {
		if a.UID == p.UID {
			node = a.Node
		}
	}
	return node, proceed
}

// reserve runs the rest of the scheduling cycle.
func (w *world) reserve(p *worldPod, node string, ordinary bool) {
	turnedAway := func() {
		w.unreserve(p)
		// Another plugin, whose events bring back an ordinary pod.
		p.foreign = ordinary && p.place == parked
	}
	w.interrupt()
	if w.goesWrong(10, "Reserve of a plugin before this one") {
		turnedAway()
		return
	}
	ok := w.l.Cycles.Reserve(p.UID, node, w.now)
	switch {
	case !ok:
		w.unreserve(p)
		return
	case w.goesWrong(10, "Reserve of a plugin after this one"):
		turnedAway()
		return
	}
	p.Node = node
	w.interrupt()
	if w.goesWrong(10, "Permit of another plugin") {
		turnedAway()
		return
	}
	if standing := w.l.Cycles.Standing(p.UID); standing.Reserved && w.draw(4, "another plugin lets the pod wait") == 0 {
		p.place, p.deadline = asking, w.now.Add(standing.Patience(w.now))
		return
	}
	w.permit(p)
}

// permit asks whether a pod may go that nothing but its siblings can keep.
func (w *world) permit(p *worldPod) {
	first := false
	w.proceed(p, waiting, func() (e Effects, wait time.Duration, ok bool) {
		e, wait, first, ok = w.l.Cycles.Permit(p.UID, w.now)
		return e, wait, ok
	})
	if first && p.place == binding {
		p.place = writing
	}
}

// proceed asks whether a pod that holds its assignment may go on.
func (w *world) proceed(p *worldPod, wait spot, ask func() (Effects, time.Duration, bool)) {
	e, d, ok := ask()
	switch {
	case !ok && wait == waiting:
		w.carryOut(e)
		w.unreserve(p)
		return
	case !ok:
		w.carryOut(e)
		w.unbind(p)
		return
	case d > 0:
		p.place, p.deadline = wait, w.now.Add(d)
	default:
		p.place = binding
	}
	for _, r := range e.Allow {
		if r.UID == p.UID {
			w.t.Fatalf("%s is told twice that it may go", p.UID)
		}
	}
	w.carryOut(e)
}
