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

// Refusal is a node that did not take a member of a class although it was planned.
type Refusal struct{ Class, Node string }

// plan is the assignments that a group has been given and whose members are not bound yet.
type plan struct {
	// order holds the members in the order of the proposal. assignments is what each was given, without those whose
	// members have been bound, have gone, or turned out not to fit.
	order       []*member
	assignments map[*member]Assignment
	// ordered is set if the members reserve one after the other.
	ordered  bool
	deadline time.Time
	progress planProgress
	// refused holds the nodes that turned out not to take members of a class, setbacks counts such refusals since a
	// member last reserved.
	refused  map[Refusal]bool
	setbacks int
	// failure is what blocks the group when the plan ends without the minimum, because a member that was let go came
	// back.
	failure *block
	// all counts the assignments, ready those of members that can be bound as soon as all can.
	all, ready numbers
	flow       flow
}

// planProgress says how far a plan has come.
type planProgress uint8

const (
	// reserving plans wait for their members to reserve.
	reserving planProgress = iota
	// replanning plans have lost an assignment: a leader has to plan for the members that remain.
	replanning
	// committed plans have let the members go that hold an assignment.
	committed
)

// numbers counts members, and those of each role.
type numbers struct {
	total int
	roles map[string]int
}

func (n *numbers) add(role string, by int) {
	n.total += by
	if role != "" {
		n.roles[role] += by
	}
}

// newPlan returns a plan without assignments, or with those of a plan that is to be replaced.
func newPlan(before *plan, size int, ordered bool, deadline time.Time) *plan {
	p := &plan{assignments: make(map[*member]Assignment, size), ordered: ordered, deadline: deadline,
		all: numbers{roles: map[string]int{}}, ready: numbers{roles: map[string]int{}}}
	if before != nil {
		p.deadline, p.ordered = before.deadline, ordered || before.ordered
		p.refused, p.setbacks = before.refused, before.setbacks
		for _, m := range before.order {
			if a, kept := before.assignments[m]; kept {
				p.add(m, a)
			}
		}
	}
	return p
}

func (p *plan) add(m *member, a Assignment) {
	p.order, p.assignments[m] = append(p.order, m), a
	p.count(m, 1)
}

// count adds an assigned member to the numbers, by one, or takes it out, by minus one.
func (p *plan) count(m *member, by int) {
	p.all.add(m.Role, by)
	if m.stage.ready() {
		p.ready.add(m.Role, by)
	}
}

func (p *plan) node(m *member) string {
	if p == nil {
		return ""
	}
	return p.assignments[m].Node
}

func (p *plan) drop(m *member) {
	if p.node(m) != "" {
		p.count(m, -1)
		delete(p.assignments, m)
	}
}

// serves reports whether the minimum is met when all members of the plan are bound.
func serves(g *group, p *plan) bool { return g.census.metWith(g.spec().Minimum, p.all) }

// servesReady reports whether that is so when those members of the plan are bound that are ready.
func servesReady(g *group, p *plan) bool { return g.census.metWith(g.spec().Minimum, p.ready) }

const (
	// window is how many members of a plan are let into the queue at a time. They come before all others there, who
	// would wait for all of a large group otherwise.
	window = 64
	// QueuePause is the pause before the next members of a plan are let in. Others are scheduled meanwhile.
	QueuePause = 50 * time.Millisecond
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

// flow says which members of a plan were let into the queue, and let go.
type flow struct {
	// next is the index in the plan's order of the first member that has not reserved, queued of the first that was not
	// let into the queue yet.
	next, queued int
	// queuedAt is when members were let in last, emptyAt when all that were let in had reserved.
	queuedAt, emptyAt time.Time
	// enoughAt is when those that hold their assignments were enough for the minimum for the first time.
	enoughAt time.Time
	// toAllow holds the members of a plan that is carried out that were not told to go yet; allowedAt is when some were
	// told last.
	toAllow   []Ref
	allowedAt time.Time
}

// passed reports whether others may reserve after this member, because it has reserved or is not in the plan any more.
func (p *plan) passed(m *member) bool { return p.node(m) == "" || m.stage.ready() }

// first returns the first member that has not reserved, nil if all have.
func (p *plan) first() *member {
	f := &p.flow
	for f.next < len(p.order) && p.passed(p.order[f.next]) {
		f.next++
	}
	if f.next == len(p.order) {
		return nil
	}
	return p.order[f.next]
}

// mayReserve reports whether all members that have to reserve before this one have done so.
func (p *plan) mayReserve(m *member) bool {
	if !p.ordered {
		return true
	}
	first := p.first()
	return first == nil || first == m
}

// allQueued reports whether all members of the plan have been let in.
func (p *plan) allQueued() bool { return p.flow.queued == len(p.order) }

// toQueue returns the members that the plan lets into the queue when it is made or one of them has reserved.
func (p *plan) toQueue() []*member {
	switch {
	case p.progress != reserving:
	case p.flow.queued == 0:
		return p.nextWindow()
	case p.ordered:
		if first := p.first(); p.flow.next < p.flow.queued {
			return []*member{first}
		}
	}
	return nil
}

// moreToQueue returns the next members to be let in, a moment after the last of those before them has reserved.
func (p *plan) moreToQueue(now time.Time) []*member {
	f := &p.flow
	if p.progress != reserving {
		return nil
	}
	if f.queuedAt.IsZero() {
		f.queuedAt = now
	}
	p.first()
	switch {
	case !p.ordered && now.Sub(f.queuedAt) >= flowPatience:
		f.next, f.emptyAt = f.queued, time.Time{}
		if p.allQueued() {
			// A member was let in and is kept out of the queue all the same.
			f.next, f.queued = 0, 0
		}
	case f.next < f.queued, p.ordered && p.allQueued():
		f.emptyAt = time.Time{}
		return nil
	case !f.rested(now):
		return nil
	}
	f.queuedAt = now
	return p.nextWindow()
}

// rested reports whether all that were let in had reserved a QueuePause ago, and begins to count again if so.
func (f *flow) rested(now time.Time) bool {
	switch {
	case f.emptyAt.IsZero():
		f.emptyAt = now
		return false
	case now.Sub(f.emptyAt) < QueuePause:
		return false
	}
	f.emptyAt = time.Time{}
	return true
}

// nextWindow returns the next members to be let in. Where they reserve in order, those after the first follow one by
// one.
func (p *plan) nextWindow() (in []*member) {
	for f := &p.flow; f.queued < len(p.order) && len(in) < window; f.queued++ {
		if m := p.order[f.queued]; !p.passed(m) {
			in = append(in, m)
		}
	}
	if p.ordered && len(in) > 0 {
		return in[:1]
	}
	return in
}

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
