package gang

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang/tree"
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
	// asking pods wait in Permit for another plugin, waiting pods for their siblings; writing pods prepare in PreBind;
	// written pods wait there afterwards; binding pods were let go.
	asking
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
	// looks are what the groups looked like then.
	looks map[ID]View
	// calm switches off everything that goes wrong.
	calm bool
	// changes counts what happened at the API server, calls what the ledger was told or asked.
	changes, calls int
	// visited counts stages seen, evicted the evictions of a group as a whole.
	visited map[stage]int
	evicted int
	// salt makes another history of the same seed.
	salt uint64
	// needs is what the gangs of this world need.
	needs needs
}

// needs is the minimum of gangs, which the world chooses if it has no total, and the roles of their members.
type needs struct {
	minimum Minimum
	roles   []string
}

var allNeeds = []needs{
	{Minimum{}, []string{"", "leader"}},
	{Minimum{}, []string{"", "leader"}},
	{Minimum{Total: 2, Roles: map[string]int{"leader": 1, "worker": 1}}, []string{"leader", "worker", "worker"}},
	{Minimum{Total: 2, Tree: &tree.Group{Least: 2, Groups: []tree.Group{
		{Name: "copy", Least: 1, Groups: []tree.Group{
			{Name: "copy-0", Roles: map[string]int{"copy-0": 1}},
			{Name: "copy-1", Roles: map[string]int{"copy-1": 2}},
			{Name: "copy-2", Roles: map[string]int{"copy-2": 1}}}},
		{Name: "router", Roles: map[string]int{"router": 1}}}}},
		[]string{"copy-0", "copy-1", "copy-2", "router"}},
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, l: NewLedger(time.Minute, nil), now: t0, pods: map[UID]*worldPod{}, stages: map[UID]stage{},
		visited: map[stage]int{}}
	w.needs = allNeeds[w.draw(len(allNeeds), "needs")]
	return w
}

// draw returns one of n numbers, each about as often: rapid prefers small ones, and shrinks to 0.
func (w *world) draw(n int, what string) int {
	return int((rapid.Uint64().Draw(w.t, what) + w.salt) * 0x9e3779b97f4a7c15 >> 33 % uint64(n))
}

// goesWrong is true once in n times.
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
		if p.place != asking && p.place != waiting && p.place != writing && p.place != written && p.place != cycling {
			w.t.Fatalf("%s is asked for an assignment and neither waits nor prepares: %d", r.UID, p.place)
		}
		if r.Reason == nil {
			w.t.Fatalf("%s is asked for its assignment without a reason", r.UID)
		}
		p.rejected = p.place != cycling
	}
	for _, r := range e.Activate {
		switch p := w.pods[r.UID]; {
		case p == nil || p.deleted:
		case !p.Ours:
			w.t.Fatalf("%s is activated and belongs to another scheduler", r.UID)
		case p.place == parked && p.member():
			if p.foreign = false; p.barred {
				break
			}
			if ok, why := w.l.Cycles.Admit(p.UID); !ok {
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
	case p.State == Gated && !p.deleted, p.barred, !p.Ours:
	case p.deleted || p.State != Pending:
		p.place = settledDown
	case !p.member():
		p.place = active
	default:
		if ok, _ := w.l.Cycles.Admit(p.UID); ok {
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

// unreserve lets the plugins give up what they hold for the pod, in the scheduling cycle or when it was turned away in
// Permit.
func (w *world) unreserve(p *worldPod) {
	w.t.Logf("unreserve %s", p.UID)
	p.place, p.rejected = cycling, false
	w.carryOut(w.l.Cycles.Unreserve(p.UID, testBackoff, w.now))
	w.land(p)
}

// unbind does so when writing or binding has failed: the scheduler tries such pods again after a pause, and an
// activation in between is lost.
func (w *world) unbind(p *worldPod) {
	p.place, p.rejected = cycling, false
	w.carryOut(w.l.Cycles.Unreserve(p.UID, testBackoff, w.now))
	p.activated = false
	w.land(p)
	if p.place == parked {
		w.enqueue(p)
	}
}

// finish ends what a pod does in the background.
func (w *world) finish(p *worldPod) {
	switch {
	case p.place == asking:
		standing := w.l.Cycles.Standing(p.UID)
		switch {
		case !standing.Holds, p.rejected:
			w.unreserve(p)
		case w.goesWrong(4, "another plugin turns the pod away"):
			w.unreserve(p)
			// One that was let go is brought back by the events of the other plugin.
			p.foreign = standing.Allowed && p.place == parked
		default:
			w.permit(p)
		}
	case p.place == writing && (p.rejected || w.goesWrong(5, "writing fails")):
		w.unbind(p)
	case p.place == writing:
		w.proceed(p, written, func() (Effects, time.Duration, bool) { return w.l.Cycles.Prepared(p.UID, w.now) })
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
