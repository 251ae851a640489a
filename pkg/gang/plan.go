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
	order       []*member
	assignments map[*member]Assignment
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

// newPlan returns a plan without assignments, or with those of a plan that was open.
func newPlan(open *plan, size int, ordered bool, deadline time.Time) *plan {
	p := &plan{assignments: make(map[*member]Assignment, size), ordered: ordered, deadline: deadline}
	if open != nil {
		p.deadline, p.refusals, p.ordered = open.deadline, open.refusals, ordered || open.ordered
		for _, m := range open.order {
			if a, kept := open.assignments[m]; kept {
				p.add(m, a)
			}
		}
	}
	return p
}

func (p *plan) add(m *member, a Assignment) { p.order, p.assignments[m] = append(p.order, m), a }

func (p *plan) node(m *member) string {
	if p == nil {
		return ""
	}
	return p.assignments[m].Node
}

func (p *plan) drop(m *member) {
	if p != nil {
		delete(p.assignments, m)
		p.recount()
	}
}

// passed reports whether others may reserve after this member, because it has reserved or is not in the plan any more.
func (p *plan) passed(m *member) bool { return p.node(m) == "" || m.stage.ready() }

// turnCame reports whether all members that have to reserve before this one have done so.
func (p *plan) turnCame(m *member) bool {
	if !p.ordered {
		return true
	}
	p.passOn()
	return p.next == len(p.order) || p.order[p.next] == m
}

// passOn brings next of an ordered plan up to date.
func (p *plan) passOn() {
	for p.next < len(p.order) && p.passed(p.order[p.next]) {
		p.next++
	}
}

// planTally counts the assignments of a plan, as it is asked for them with every member that reserves.
type planTally struct {
	// counted is set while the numbers are right.
	counted bool
	// ready counts the members that can be bound as soon as all can, roles and readyRoles those that have a role.
	ready             int
	roles, readyRoles map[string]int
}

// countReady takes note of a member that is ready now, or not any more.
func (t *planTally) countReady(m *member, ready bool) {
	by := 1
	if !ready {
		by = -1
	}
	t.ready += by
	if m.Role != "" {
		t.readyRoles[m.Role] += by
	}
}

// recount has the assignments counted again before they are asked for.
func (p *plan) recount() {
	if p != nil {
		p.tally.counted = false
	}
}

// counts reports whether the member is among those that were counted.
func (p *plan) counts(m *member) bool { return p != nil && p.tally.counted && p.node(m) != "" }

// tallied returns the counts of the plan.
func (p *plan) tallied() *planTally {
	t := &p.tally
	if t.counted {
		return t
	}
	*t = planTally{counted: true, roles: map[string]int{}, readyRoles: map[string]int{}}
	for m := range p.assignments {
		if m.Role != "" {
			t.roles[m.Role]++
		}
		if m.stage.ready() {
			t.countReady(m, true)
		}
	}
	return t
}

// serves reports whether the minimum is met when all members of the plan are bound.
func serves(g *group, p *plan) bool {
	return g.census.metWith(g.spec().Minimum, len(p.assignments), p.tallied().roles)
}

// servesReady reports whether that is so when those members of the plan are bound that are ready.
func servesReady(g *group, p *plan) bool {
	return g.census.metWith(g.spec().Minimum, p.tallied().ready, p.tallied().readyRoles)
}
