package gang

import (
	"cmp"
	"slices"
)

// member is a pod of a group, and where it is on its way to a node.
type member struct {
	Member
	group *group
	stage stage
	// node is the assignment that the member holds in memory, without meaning at stages without one.
	node string
	// declined is set while others lead in place of this member, which could not plan or did not come.
	declined bool
	key      Key
	keyed    bool
}

// roster is the members of a group.
type roster struct {
	members map[UID]*member
	census  census
	// holding counts members that hold an assignment in memory.
	holding int
	// leader stands for the group in the queue.
	leader *member
	// unqueued holds the members that are kept out of the queue.
	unqueued map[*member]bool
}

func newRoster() roster {
	return roster{members: map[UID]*member{}, census: newCensus(), unqueued: map[*member]bool{}}
}

// lead returns the member that stands for the group in the queue: the oldest that can be placed and has not declined.
// Another is chosen only when it is gone, so that the queue sees one leader at a time.
func (r *roster) lead() *member {
	if r.leader != nil && r.leader.mayLead() && !r.leader.declined {
		return r.leader
	}
	r.leader = nil
	for _, m := range r.members {
		if m.mayLead() && (r.leader == nil || m.leadsBefore(r.leader)) {
			r.leader = m
		}
	}
	return r.leader
}

// decline has another member lead in place of this one, which cannot plan. It reports whether there is one that has not
// declined.
func (r *roster) decline(m *member) bool {
	m.declined, r.leader = true, nil
	if next := r.lead(); next != nil && !next.declined {
		return true
	}
	r.clearDeclined()
	return false
}

// clearDeclined lets members lead again that have declined.
func (r *roster) clearDeclined() {
	for _, m := range r.members {
		m.declined = false
	}
}

// begun reports whether members have a node, or are being bound.
func (r *roster) begun() bool {
	for _, m := range r.members {
		if m.State == Bound || m.stage == released {
			return true
		}
	}
	return false
}

// stopAlone keeps members out of the queue that were let in as ordinary pods.
func (r *roster) stopAlone() {
	for _, m := range r.members {
		if m.stage == alone {
			m.move(isDenied)
		}
	}
}

// example returns the oldest member, of those that another scheduler places if there are any.
func (r *roster) example() (oldest *member) {
	for _, m := range r.members {
		if oldest == nil || (m.Ours == oldest.Ours && m.before(oldest)) || (!m.Ours && oldest.Ours) {
			oldest = m
		}
	}
	return oldest
}

// waiting counts the members that can be placed by class and role, the oldest member's first.
func (r *roster) waiting() []WaitingClass {
	type kind struct{ class, role string }
	type tally struct {
		count  int
		oldest *member
	}
	var all []*tally
	tallies := map[kind]*tally{}
	var t *tally
	for _, m := range r.members {
		if !m.mayLead() {
			continue
		}
		// Members of one class are the rule, so that the last one found is tried first.
		if t == nil || t.oldest.Class != m.Class || t.oldest.Role != m.Role {
			k := kind{m.Class, m.Role}
			if t = tallies[k]; t == nil {
				t = &tally{oldest: m}
				tallies[k], all = t, append(all, t)
			}
		}
		t.count++
		if m.before(t.oldest) {
			t.oldest = m
		}
	}
	slices.SortFunc(all, func(a, b *tally) int { return byAge(a.oldest, b.oldest) })
	classes := make([]WaitingClass, len(all))
	for i, t := range all {
		classes[i] = WaitingClass{Class: t.oldest.Class, Role: t.oldest.Role, Count: t.count, Example: t.oldest.Ref}
	}
	return classes
}

func (m *member) mayLead() bool { return m.State == Pending && m.Ours && !m.stage.holds() }

func (m *member) leadsBefore(o *member) bool {
	if m.declined != o.declined {
		return o.declined
	}
	return m.before(o)
}

// compare orders members, the oldest first.
func (m *Member) compare(o *Member) int {
	if c := m.Created.Compare(o.Created); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(m.Name, o.Name), cmp.Compare(m.UID, o.UID))
}

func (m *member) before(o *member) bool { return m.compare(&o.Member) < 0 }

func byAge(a, b *member) int { return a.compare(&b.Member) }

// Counts are the numbers of members of a group.
type Counts struct {
	// Count holds the number of members by state, Roles that of members with a role.
	Count ByState
	Roles map[string]ByState
	// Running is the number of bound members that run, Foreign of pending ones that another scheduler places.
	Running, Foreign int
}

// census counts the members of a group. It decides nothing: quorum and start are asked of it with a Minimum.
type census struct {
	Counts
	// priorities and precedences count the members by what they have, labelled those that carry a minimum themselves.
	priorities  map[int32]int
	precedences map[Precedence]int
	labelled    map[int]int
}

func newCensus() census {
	return census{Counts: Counts{Roles: map[string]ByState{}}, priorities: map[int32]int{},
		precedences: map[Precedence]int{}, labelled: map[int]int{}}
}

// ByState holds a number of members for each state.
type ByState [states]int

// Settled is the number of members that need no node any more: they have one or have finished well.
func (n ByState) Settled() int { return n[Bound] + n[Succeeded] }

// Existing is the number of members that are settled or can be placed.
func (n ByState) Existing() int { return n.Settled() + n[Pending] }

// Settled is the number of members that count as placed.
func (c *Counts) Settled() int { return c.Count.Settled() }

// SettledIn is the number of those with the role.
func (c *Counts) SettledIn(role string) int { return c.Roles[role].Settled() }

// Existing is the number of members that count towards the quorum.
func (c *Counts) Existing() int { return c.Count.Existing() }

func (c *Counts) existingIn(role string) int { return c.Roles[role].Existing() }

// met reports whether the minimum has been placed.
func (c *Counts) met(m Minimum) bool { return m.MetBy(c.Settled(), c.SettledIn) }

// metWith reports whether the minimum is met with more members.
func (c *Counts) metWith(m Minimum, more numbers) bool {
	return m.MetBy(c.Settled()+more.total, func(role string) int { return c.SettledIn(role) + more.roles[role] })
}

// tolerates reports whether what is left is of use when members are lost, which are counted by role.
func (c *Counts) tolerates(m Minimum, lost map[string]int) bool {
	bound := map[string]int{}
	for role, states := range c.Roles {
		bound[role] = states[Bound]
	}
	return m.Tolerates(c.Settled(), lost, bound, c.SettledIn)
}

// quorum reports whether enough members exist to start.
func (c *Counts) quorum(m Minimum) bool { return m.MetBy(c.Existing(), c.existingIn) }

// count adds the member as it is observed, by one, or takes it out, by minus one.
func (c *census) count(m *Member, by int) {
	c.Count[m.State] += by
	if m.Role != "" {
		of := c.Roles[m.Role]
		of[m.State] += by
		if c.Roles[m.Role] = of; of == (ByState{}) {
			delete(c.Roles, m.Role)
		}
	}
	if m.Running {
		c.Running += by
	}
	if !m.Ours && m.State == Pending {
		c.Foreign += by
	}
	tally(c.priorities, m.Priority, by)
	tally(c.precedences, m.Precedence, by)
	if m.Minimum > 0 {
		tally(c.labelled, m.Minimum, by)
	}
}

func tally[K comparable](counts map[K]int, key K, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}

// priority is the lowest of any member: a group is as important as its least important member.
func (c *census) priority() int32 {
	lowest, first := int32(0), true
	for p := range c.priorities {
		if first || p < lowest {
			lowest, first = p, false
		}
	}
	return lowest
}

// precedence is that of the member that may wait longest: a group is as urgent as its least urgent member.
func (c *census) precedence() Precedence {
	var last Precedence
	for p := range c.precedences {
		last.Ages = last.Ages || p.Ages
		last.Wait = max(last.Wait, p.Wait)
	}
	return last
}

// largestLabel is the largest minimum that members carry themselves; 0 if none does.
func (c *census) largestLabel() (largest int) {
	for n := range c.labelled {
		largest = max(largest, n)
	}
	return largest
}
