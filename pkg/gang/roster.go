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
	// node is the assignment that the member holds in memory; it means nothing at stages that hold none.
	node string
	// declined is set while others are to lead rather than this one, which could not plan or did not come.
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
	// atRest holds the members that are kept out of the queue.
	atRest map[*member]bool
}

func newRoster() roster {
	return roster{members: map[UID]*member{}, census: newCensus(), atRest: map[*member]bool{}}
}

// lead returns the member that stands for the group in the queue: the oldest that can be placed and has not declined,
// chosen again only when it is gone, so that the queue sees one leader at a time.
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

// decline passes the lead on from the member, which cannot plan, and reports whether there is another that has not
// declined.
func (r *roster) decline(m *member) bool {
	m.declined, r.leader = true, nil
	if next := r.lead(); next != nil && !next.declined {
		return true
	}
	r.pardon()
	return false
}

// pardon lets those lead again that have declined.
func (r *roster) pardon() {
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

// ground has members wait that were let into the queue as ordinary pods.
func (r *roster) ground() {
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
		kind
		count  int
		oldest *member
	}
	var all []tally
	index := map[kind]int{}
	at := 0
	for _, m := range r.members {
		if !m.mayLead() {
			continue
		}
		// Members of one class are the rule, so that the last one found is tried first.
		if len(all) == 0 || all[at].class != m.Class || all[at].role != m.Role {
			k := kind{m.Class, m.Role}
			i, known := index[k]
			if !known {
				i = len(all)
				index[k] = i
				all = append(all, tally{kind: k, oldest: m})
			}
			at = i
		}
		all[at].count++
		if m.before(all[at].oldest) {
			all[at].oldest = m
		}
	}
	slices.SortFunc(all, func(a, b tally) int { return byAge(a.oldest, b.oldest) })
	classes := make([]WaitingClass, len(all))
	for i, t := range all {
		classes[i] = WaitingClass{Class: t.class, Role: t.role, Count: t.count, Example: t.oldest.Ref}
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
