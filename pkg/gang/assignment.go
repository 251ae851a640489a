package gang

import (
	"fmt"
	"time"
)

// Assignment gives a member a node.
type Assignment struct {
	UID  UID
	Node string
	// First is set for a member that has to write something before siblings can follow, such as the allocation of a claim
	// that they share. It does that as soon as it has reserved, and waits for its siblings afterwards.
	First bool
}

// Proposal is a plan for a group: assignments in the order in which they were found.
type Proposal struct {
	Assignments []Assignment
	// Ordered is set if each has to be reserved after those before it, because what one may take depends on them.
	Ordered bool
}

// plan is the assignments that a group has been given and not all of which are bound yet.
type plan struct {
	epoch uint64
	// order holds the members in the order of the proposal, assignments what each was given.
	order       []UID
	assignments map[UID]Assignment
	ordered     bool
	deadline    time.Time
	// committed is set once every assignment was reserved and all members were let go.
	committed bool
	// open is set while the plan has lost an assignment and a leader has to plan for the members that remain.
	open bool
	// refused holds why a node turned out not to take members of a class.
	refused map[Refusal]string
	// setbacks counts refusals since a member last reserved.
	setbacks int
}

// Refusal is a node that did not take a member of a class although it was planned.
type Refusal struct{ Class, Node string }

// maxSetbacks is how many assignments in a row may turn out wrong before the group is blocked.
const maxSetbacks = 3

func (p *plan) node(uid UID) string {
	if p == nil {
		return ""
	}
	return p.assignments[uid].Node
}

func (p *plan) drop(uid UID) {
	if p != nil {
		delete(p.assignments, uid)
	}
}

// block is why and until when a group is not tried.
type block struct {
	reason string
	tried  time.Time
	// retryAt ends the pause.
	retryAt time.Time
	// short holds the classes of which not every member found a node, so that more of them are no news.
	short map[string]bool
	// cycle is set if a scheduling cycle of the leader found it, which then says so itself.
	cycle bool
}

func (g *group) unblock() { g.block, g.attempts = nil, 0 }

// Propose makes the proposal the plan of the group that leader leads, and reports whether it still serves, as members may
// have come and gone while it was made, and whether the leader can go on in this very cycle: it has an assignment, and
// nobody has to reserve before it.
func (l *Ledger) Propose(leader UID, proposal Proposal, now time.Time) (e Effects, serves, proceed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[leader]
	if m == nil {
		return Effects{}, false, false
	}
	g := m.group
	if kind, _ := m.turn(); kind != Lead {
		m.move(isDenied)
		return l.settle(g, now), false, false
	}
	p := &plan{assignments: make(map[UID]Assignment, len(proposal.Assignments)), ordered: proposal.Ordered, deadline: now.Add(g.spec().Timeout)}
	if old := g.plan; old != nil {
		p.deadline, p.refused, p.setbacks, p.ordered = old.deadline, old.refused, old.setbacks, p.ordered || old.ordered
		for _, uid := range old.order {
			if a, kept := old.assignments[uid]; kept {
				p.order, p.assignments[uid] = append(p.order, uid), a
			}
		}
	}
	for _, a := range proposal.Assignments {
		if s := g.members[a.UID]; s != nil && s.State == Pending && !s.stage.holds() {
			p.order, p.assignments[a.UID] = append(p.order, a.UID), a
		}
	}
	if !g.serves(p) {
		m.move(isDenied)
		return l.settle(g, now), false, false
	}
	g.epoch++
	p.epoch = g.epoch
	for uid := range p.assignments {
		g.members[uid].epoch = p.epoch
	}
	g.plan, g.block, g.invited = p, nil, false
	if !g.started() {
		g.placedOnce = false
	}
	l.planned[g.id] = g
	proceed = p.node(leader) != "" && g.turnCame(p, leader)
	if proceed {
		m.move(isLet)
	} else {
		m.move(isDenied)
	}
	return l.settle(g, now), true, proceed
}

// serves reports whether the minimum is met when all of the plan are bound.
func (g *group) serves(p *plan) bool {
	total, roles := g.census.settled(), map[string]int{}
	for uid := range p.assignments {
		if m := g.members[uid]; m != nil && m.State == Pending {
			total++
			roles[m.Role]++
		}
	}
	return g.spec().Minimum.MetBy(total, func(role string) int { return g.census.settledIn(role) + roles[role] })
}

// turnCame reports whether everybody who has to reserve before the member has done so.
func (g *group) turnCame(p *plan, uid UID) bool {
	if !p.ordered {
		return true
	}
	for _, before := range p.order {
		if before == uid {
			return true
		}
		if m := g.members[before]; m != nil && p.node(before) != "" && m.State == Pending && m.stage != assigned && m.stage != released {
			return false
		}
	}
	return true
}

// unbound counts the assignments of the plan whose members are not bound yet, and those of them that are held in memory and
// ready.
func (g *group) unbound(p *plan) (all, ready int) {
	for uid := range p.assignments {
		if m := g.members[uid]; m != nil && m.State == Pending {
			all++
			if m.stage == assigned || m.stage == released {
				ready++
			}
		}
	}
	return all, ready
}

// Reserve records that the member holds an assignment in memory, and reports whether that is the one it has in the plan, or
// whether it needs none. A member whose plan has changed under it is activated when it may go.
func (l *Ledger) Reserve(uid UID, node string, now time.Time) (Effects, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}, false
	}
	switch p := m.group.plan; {
	case p.node(uid) == node && node != "":
		if p.assignments[uid].First && !p.committed {
			m.move(reservesFirst)
		} else {
			m.move(reserves)
		}
		m.node, p.setbacks = node, 0
		l.changed(m.group.id)
		return Effects{}, true
	case m.stage == alone && p.node(uid) == "":
		return Effects{}, true
	default:
		m.move(isDenied)
		return l.settle(m.group, now), false
	}
}

// Permit tells a member that has reserved whether it may be bound now (wait is zero), has to wait for its siblings for at
// most wait, or has lost its assignment (ok is false). One that siblings depend on comes first: it goes on, and waits
// after Prepared.
func (l *Ledger) Permit(uid UID, now time.Time) (e Effects, wait time.Duration, first, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	switch {
	case m == nil:
		return Effects{}, 0, false, false
	case m.stage == alone:
		return Effects{}, 0, false, true
	case m.stage == preparing:
		return Effects{}, 0, true, true
	}
	e, wait, ok = l.await(m, now)
	return e, wait, false, ok
}

// Prepared records that what siblings of the member depend on has been written, and tells as Permit does how it goes on.
func (l *Ledger) Prepared(uid UID, now time.Time) (e Effects, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}, 0, false
	}
	m.move(isPrepared)
	return l.await(m, now)
}

// await settles the group and says how a member that holds an assignment goes on.
func (l *Ledger) await(m *member, now time.Time) (e Effects, wait time.Duration, ok bool) {
	g := m.group
	if !m.stage.holds() || g.plan.node(m.UID) == "" {
		return Effects{}, 0, false
	}
	if !g.plan.committed {
		e = l.settle(g, now)
	}
	switch {
	case g.plan == nil:
		return e, 0, false
	case g.plan.committed:
		for i, r := range e.Allow {
			if r.UID == m.UID {
				e.Allow = append(e.Allow[:i], e.Allow[i+1:]...)
				break
			}
		}
		return e, 0, true
	}
	return e, max(g.plan.deadline.Sub(now), time.Millisecond), true
}

// Unreserve records that the member has given its assignment back. If nobody asked for that, the node has turned it away
// after all.
func (l *Ledger) Unreserve(uid UID, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	g, held := m.group, m.stage.holds()
	m.move(givesBack)
	node := g.plan.node(uid)
	if node == "" || m.epoch != g.plan.epoch {
		if held {
			return l.settle(g, now)
		}
		return Effects{}
	}
	m.move(isDenied)
	if g.plan.committed {
		g.plan.drop(uid)
		return l.settle(g, now)
	}
	return l.refuse(m, fmt.Sprintf("node %s turned pod %s away when it reserved its place", node, m.Name), backoff, now)
}

// Broken records that the node that the plan gives to the member does not take it.
func (l *Ledger) Broken(uid UID, why string, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil || m.group.plan.node(uid) == "" {
		return Effects{}
	}
	m.move(isDenied)
	return l.refuse(m, why, backoff, now)
}

// refuse takes the member's assignment out of the plan. The group goes on without it if the others are enough. If not, the
// assignments that siblings hold stay, and the member leads the planning of the rest, which leaves this node out for
// its like; unless that has been in vain too often.
func (l *Ledger) refuse(m *member, why string, backoff Backoff, now time.Time) Effects {
	g, p := m.group, m.group.plan
	if p.refused == nil {
		p.refused = map[Refusal]string{}
	}
	refusal := Refusal{Class: m.Class, Node: p.node(m.UID)}
	_, again := p.refused[refusal]
	p.refused[refusal] = why
	p.drop(m.UID)
	p.setbacks++
	switch {
	case p.committed:
		return l.settle(g, now)
	case !p.open && g.spec() != nil && g.serves(p):
		return l.settle(g, now)
	case p.setbacks > maxSetbacks || again:
		return l.blockGroup(g, why, nil, true, backoff, now)
	}
	for uid := range p.assignments {
		if o := g.members[uid]; o == nil || (o.State == Pending && !o.stage.holds()) {
			p.drop(uid)
		}
	}
	p.open = true
	g.leader = m
	return l.settle(g, now)
}

// Refused returns the nodes that turned out, while the group's present plan was carried out, not to take members of a class.
func (l *Ledger) Refused(id ID) map[Refusal]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil || g.plan == nil || len(g.plan.refused) == 0 {
		return nil
	}
	out := make(map[Refusal]bool, len(g.plan.refused))
	for r := range g.plan.refused {
		out[r] = true
	}
	return out
}

// Expire releases the plans whose time is over.
func (l *Ledger) Expire(backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e Effects
	for _, g := range l.planned {
		if g.plan != nil && !g.plan.committed && now.After(g.plan.deadline) {
			_, ready := g.unbound(g.plan)
			e = merge(e, l.blockGroup(g, fmt.Sprintf("gang %s: %d of %d members had reserved their nodes when the schedule timeout of %s was over",
				g.id, ready, len(g.plan.assignments), g.spec().Timeout), nil, false, backoff, now))
		}
	}
	return e
}

// Holding reports whether the member still holds an assignment in memory and whether it has been let go.
func (l *Ledger) Holding(uid UID) (held, allowed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil || !m.stage.holds() {
		return false, false
	}
	p := m.group.plan
	return true, p == nil || p.committed
}
