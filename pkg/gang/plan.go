package gang

import "time"

// Assignment gives a member a node.
type Assignment struct {
	UID  UID
	Node string
	// First is set for a member that has to write something before siblings can follow, such as the allocation of a
	// claim that they share. It does that as soon as it has reserved, and waits for its siblings afterwards.
	First bool
}

// Proposal is a plan for a group: assignments in the order in which they were found.
type Proposal struct {
	Assignments []Assignment
	// Ordered is set if each has to be reserved after those before it, because what one may take depends on them.
	Ordered bool
}

// plan is the assignments that a group has been given and whose members are not bound yet.
type plan struct {
	// order holds the members in the order of the proposal. assignments is what each was given, without those whose
	// members have been bound, have gone, or turned out not to fit.
	order       []UID
	assignments map[UID]Assignment
	// ordered is set if the members reserve one after the other; next is then the index in order of the first that has
	// not.
	ordered  bool
	next     int
	deadline time.Time
	// enoughAt is when those that hold their assignments were enough for the minimum for the first time.
	enoughAt time.Time
	// committed is set once the members that hold an assignment were let go.
	committed bool
	// open is set while the plan has lost an assignment and a leader has to plan for the members that remain.
	open     bool
	refusals refusals
	// failure is what blocks the group when the plan ends without the minimum, because a member that was let go came
	// back.
	failure *block
	// tally counts the assignments, flow says who of the plan is in the queue.
	tally planTally
	flow  planFlow
}

// stragglersGrace is how long a plan waits for members that the minimum does not need, once all that it needs are
// ready.
const stragglersGrace = time.Second

func (p *plan) node(uid UID) string {
	if p == nil {
		return ""
	}
	return p.assignments[uid].Node
}

func (p *plan) drop(uid UID) {
	if p != nil {
		delete(p.assignments, uid)
		p.recount()
	}
}

// passed reports whether others may reserve after this member, because it has reserved or is not in the plan any more.
func (g *group) passed(p *plan, uid UID) bool {
	m := g.members[uid]
	return p.node(uid) == "" || m == nil || m.stage.ready()
}

// turnCame reports whether all members that have to reserve before this one have done so.
func (g *group) turnCame(p *plan, uid UID) bool {
	if !p.ordered {
		return true
	}
	g.passOn(p)
	return p.next == len(p.order) || p.order[p.next] == uid
}

// passOn brings next of an ordered plan up to date.
func (g *group) passOn(p *plan) {
	for p.next < len(p.order) && g.passed(p, p.order[p.next]) {
		p.next++
	}
}
