package gang

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// spot is where a pod is in the scheduler.
type spot int

const (
	// parked pods are out of the queue: kept out by PreEnqueue, or unschedulable.
	parked spot = iota
	// active pods wait in the queue for their cycle.
	active
	// cycling is the pod whose scheduling cycle runs.
	cycling
	// waiting pods wait in Permit; writing pods prepare in PreBind; written pods wait there afterwards; binding pods were let go.
	waiting
	writing
	written
	binding
	// settledDown pods are bound or have ended.
	settledDown
)

// worldPod is what is true of one pod.
type worldPod struct {
	Member
	group ID
	place spot
	// deadline ends its wait in Permit or PreBind.
	deadline time.Time
	// activated is set by an activation during its cycle or its way back. rejected is set once it was asked for its
	// assignment, until it gives that back.
	activated, rejected bool
	// barred is set while the PreEnqueue of another plugin keeps it out; foreign while another plugin has found it
	// unschedulable, whose events bring it back.
	barred, foreign bool
	// deleted is set when the pod is gone from the API server; left when it has changed its group on its way, which the
	// scheduler does not notice.
	deleted, left bool
}

func (p *worldPod) member() bool { return p.group != ID{} }

// world is a naive model of the API server and the scheduler around a ledger. Properties are checked after every call.
type world struct {
	t    *rapid.T
	l    *Ledger
	now  time.Time
	pods map[UID]*worldPod
	next int
	// stages are those of the members after the last call.
	stages map[UID]stage
	// calm switches off everything that goes wrong.
	calm bool
	// changes counts what happened at the API server.
	changes int
	// visited counts stages seen.
	visited map[stage]int
}

func newWorld(t *rapid.T) *world {
	return &world{t: t, l: NewLedger(time.Minute, nil), now: t0, pods: map[UID]*worldPod{}, stages: map[UID]stage{}, visited: map[stage]int{}}
}

func (w *world) draw(n int, what string) int { return rapid.IntRange(0, n-1).Draw(w.t, what) }

// goesWrong is true once in so many times.
func (w *world) goesWrong(once int, what string) bool { return !w.calm && w.draw(once, what) == 0 }

func (w *world) all(of func(*worldPod) bool) []*worldPod {
	var out []*worldPod
	for i := range w.next {
		if p := w.pods[uid(i)]; p != nil && of(p) {
			out = append(out, p)
		}
	}
	return out
}

func (w *world) at(places ...spot) []*worldPod {
	return w.all(func(p *worldPod) bool { return slices.Contains(places, p.place) })
}

func (w *world) some(pods []*worldPod) *worldPod {
	if len(pods) == 0 {
		return nil
	}
	return pods[w.draw(len(pods), "pod")]
}

// carryOut does what the ledger asks for, after the properties are checked.
func (w *world) carryOut(e Effects) {
	if !e.Empty() {
		w.t.Logf("effects %+v", e)
	}
	w.check()
	for _, r := range e.Allow {
		switch p := w.pods[r.UID]; {
		case p.place == waiting || p.place == written:
			if !p.rejected {
				p.place = binding
			}
		case p.place != cycling:
			w.t.Fatalf("%s is let go and does not wait: %d", r.UID, p.place)
		}
	}
	for _, r := range e.Reject {
		p := w.pods[r.UID]
		if p.place != waiting && p.place != writing && p.place != written && p.place != cycling {
			w.t.Fatalf("%s is asked for an assignment and neither waits nor prepares: %d", r.UID, p.place)
		}
		if r.Reason == "" {
			w.t.Fatalf("%s is asked for its assignment without a reason", r.UID)
		}
		p.rejected = p.place != cycling
	}
	for _, r := range e.Activate {
		switch p := w.pods[r.UID]; {
		case p == nil || p.deleted:
		case p.place == parked && p.member():
			if p.foreign = false; p.barred {
				break
			}
			if ok, why := w.l.Admit(p.UID); !ok {
				w.t.Fatalf("%s is activated in vain: %s", p.UID, why)
			}
			p.place = active
		case p.place == parked:
			p.place = active
		case p.place == active && p.left:
		case p.place == active:
			w.t.Fatalf("%s is activated and is in the queue", p.UID)
		case p.place == settledDown:
			w.t.Fatalf("%s is activated and needs no node", p.UID)
		case p.place == cycling && p.activated && !p.left:
			w.t.Fatalf("%s is activated twice in one cycle", p.UID)
		default:
			p.activated = true
		}
	}
}

// enqueue runs the plugins that guard the queue.
func (w *world) enqueue(p *worldPod) {
	p.activated, p.foreign, p.left, p.place = false, false, false, parked
	defer func() { w.t.Logf("enqueue %s: %d", p.UID, p.place) }()
	switch {
	case p.State == Gated && !p.deleted, p.barred:
	case p.deleted || p.State != Pending:
		p.place = settledDown
	case !p.member():
		p.place = active
	default:
		if ok, _ := w.l.Admit(p.UID); ok {
			p.place = active
		}
		w.check()
	}
}

// land ends a cycle that has failed: the pod comes back if it was activated meanwhile.
func (w *world) land(p *worldPod) {
	p.rejected, p.left = false, false
	switch {
	case p.deleted || p.State != Pending:
		p.place = settledDown
	case p.activated || !p.member():
		w.enqueue(p)
	default:
		p.place = parked
	}
}

// unreserve lets the plugins give up what they hold for the pod, in the scheduling cycle or when it was turned away in Permit.
func (w *world) unreserve(p *worldPod) {
	w.t.Logf("unreserve %s", p.UID)
	p.place, p.rejected = cycling, false
	w.carryOut(w.l.Unreserve(p.UID, testBackoff, w.now))
	w.land(p)
}

// unbind does so when writing or binding has failed: the scheduler tries such pods again after a pause, and an activation in
// between is lost.
func (w *world) unbind(p *worldPod) {
	p.place, p.rejected = cycling, false
	w.carryOut(w.l.Unreserve(p.UID, testBackoff, w.now))
	p.activated = false
	w.land(p)
	if p.place == parked {
		w.enqueue(p)
	}
}

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
	turn := w.l.Turn(p.UID)
	w.check()
	w.t.Logf("turn of %s: %d", p.UID, turn.Kind)
	node := turn.Node
	switch turn.Kind {
	case Hold:
		if turn.Why == "" {
			w.t.Fatalf("%s is held without a reason", p.UID)
		}
		w.land(p)
		return
	case Free:
		if w.goesWrong(3, "an ordinary pod fits nowhere") {
			w.postFilter(p)
			return
		}
		node = "n-free"
	case Lead:
		var ok bool
		if node, ok = w.lead(p, turn); !ok {
			w.land(p)
			return
		}
		fallthrough
	case Follow:
		if w.goesWrong(6, "the planned node does not take the pod") {
			w.postFilter(p)
			return
		}
	}
	w.reserve(p, node, turn.Kind == Free)
}

// postFilter is what the plugin does about a pod that fits nowhere.
func (w *world) postFilter(p *worldPod) {
	turn := w.l.Turn(p.UID)
	w.check()
	w.t.Logf("%s fits nowhere: %d", p.UID, turn.Kind)
	switch {
	case turn.Kind == Follow:
		w.carryOut(w.l.Broken(p.UID, "does not fit", testBackoff, w.now))
	case turn.Kind == Lead && !w.l.Blocked(p.UID):
		w.carryOut(w.l.Decline(p.UID, "turned away", testBackoff, w.now))
	case turn.Kind == Free:
		p.foreign = true
	}
	w.land(p)
}

// lead plans for the group of the pod and returns the pod's node, if it can go on.
func (w *world) lead(p *worldPod, turn Turn) (node string, ok bool) {
	before := w.changes
	w.interrupt()
	refused := w.l.Refused(p.group)
	var proposal Proposal
	roles, short := map[string]int{}, map[string]bool{}
	for _, m := range turn.Members {
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
	if !turn.Need.MetBy(len(proposal.Assignments), func(role string) int { return roles[role] }) {
		w.carryOut(w.l.Block(p.group, "does not fit", []string{"a"}, testBackoff, w.now))
		if again := w.l.Turn(p.UID); again.Kind == Lead && !w.l.Blocked(p.UID) {
			w.t.Fatalf("%s leads after its group was blocked", p.UID)
		}
		return "", false
	}
	if proposal.Ordered = w.draw(3, "ordered") == 0; proposal.Ordered {
		for i := range proposal.Assignments {
			proposal.Assignments[i].First = w.draw(3, "first") == 0
		}
	}
	e, serves, proceed := w.l.Propose(p.UID, proposal, w.now)
	if before == w.changes && !serves {
		w.t.Fatalf("a plan that serves was refused: need %s of %d members", turn.Need, len(turn.Members))
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
	e, ok := w.l.Reserve(p.UID, node, w.now)
	w.carryOut(e)
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
	w.proceed(p, w.l.Permit, waiting)
}

// proceed asks whether a pod that holds its assignment may go on.
func (w *world) proceed(p *worldPod, ask func(UID, time.Time) (Effects, time.Duration, bool), wait spot) {
	m := w.l.member[p.UID]
	writes := wait == waiting && m != nil && m.stage == preparing
	e, d, ok := ask(p.UID, w.now)
	switch {
	case !ok && wait == waiting:
		w.carryOut(e)
		w.unreserve(p)
		return
	case !ok:
		w.carryOut(e)
		w.unbind(p)
		return
	case writes && d == 0:
		p.place = writing
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

// finish ends what a pod does in the background.
func (w *world) finish(p *worldPod) {
	switch {
	case p.place == writing && (p.rejected || w.goesWrong(5, "writing fails")):
		w.unbind(p)
	case p.place == writing:
		w.proceed(p, w.l.Prepared, written)
	case p.place == written && p.rejected:
		w.unbind(p)
	case p.place == waiting && p.rejected:
		w.unreserve(p)
	case p.place == binding && w.goesWrong(4, "binding fails"):
		w.unbind(p)
	case p.place == binding && (p.deleted || p.State != Pending):
		w.unbind(p)
	case p.place == binding:
		p.place, p.State = settledDown, Bound
		w.observe(p)
	}
}

// observe tells the ledger what is true of the pod.
func (w *world) observe(p *worldPod) {
	w.changes++
	if p.member() {
		w.carryOut(w.l.Observe(p.group, p.Member, w.now))
	}
}

// check compares the ledger with a recount from scratch and with what is true.
func (w *world) check() {
	l := w.l
	for id, g := range l.groups {
		if diff := cmp.Diff(recounted(g.members), g.census, exactly); diff != "" {
			w.t.Fatalf("%s: counts (-recount +kept):\n%s", id, diff)
		}
		w.checkPlan(g)
		holding, going := 0, Minimum{Roles: map[string]int{}}
		for _, m := range g.members {
			if m.stage.holds() {
				holding++
			}
			if m.stage == released || m.State == Bound || m.State == Succeeded {
				going.Total++
				going.Roles[m.Role]++
			}
		}
		if holding != g.holding {
			w.t.Fatalf("%s counts %d assignments, its members hold %d", id, g.holding, holding)
		}
		for _, m := range g.members {
			w.visited[m.stage]++
			if before := w.stages[m.UID]; m.stage != released || before == released || before == alone || g.started() {
				continue
			}
			if !g.spec().Minimum.MetBy(going.Total, func(role string) int { return going.Roles[role] }) {
				w.t.Fatalf("%s is let go, the minimum is %s and %+v go or are placed", m.UID, g.spec().Minimum, going)
			}
		}
	}
	for uid, m := range l.member {
		if w.stages[uid] != m.stage {
			w.t.Logf("stage of %s: %d to %d", uid, w.stages[uid], m.stage)
		}
	}
	clear(w.stages)
	for uid, m := range l.member {
		w.stages[uid] = m.stage
	}
}

// checkPlan checks what must be true of a plan between two calls.
func (w *world) checkPlan(g *group) {
	p := g.plan
	if (p != nil && !p.committed) != (w.l.planned[g.id] == g) {
		w.t.Fatalf("%s is not found by Expire", g.id)
	}
	if g.block != nil && (g.started() || !g.quorum()) {
		w.t.Fatalf("%s is blocked (%s) and needs no plan", g.id, g.block.reason)
	}
	if p == nil {
		return
	}
	for uid := range p.assignments {
		switch m := g.members[uid]; {
		case m == nil || m.State != Pending:
			w.t.Fatalf("%s has an assignment and needs none", uid)
		case p.committed && m.stage != released, p.open && !m.stage.holds():
			w.t.Fatalf("%s is in a plan at stage %d: committed %t, open %t", uid, m.stage, p.committed, p.open)
		}
	}
	if !p.committed && p.open == g.serves(p, anyStage) {
		w.t.Fatalf("a plan serves and is open, or does neither: open %t", p.open)
	}
}

// compare checks, between two steps, that the ledger knows what is true, and that exactly those assignments are held in it
// that the scheduler holds.
func (w *world) compare() {
	for uid, p := range w.pods {
		m := w.l.member[uid]
		if known := p.member() && !p.deleted; (m != nil) != known {
			w.t.Fatalf("%s is known: %t, is a member: %t", uid, m != nil, known)
		}
		if m == nil {
			continue
		}
		if m.State != p.State || m.group.id != p.group {
			w.t.Fatalf("%s is known to be in state %d of %s, is in %d of %s", uid, m.State, m.group.id, p.State, p.group)
		}
		holds := p.place == waiting || p.place == writing || p.place == written || p.place == binding
		if p.State == Pending && !p.left && m.stage.holds() != holds {
			w.t.Fatalf("%s at place %d is at stage %d", uid, p.place, m.stage)
		}
		if m.stage == held && p.place == active && !p.left {
			w.t.Fatalf("%s is in the queue and known to be held", uid)
		}
	}
}
