package gang

import "time"

// Key is the place of a pod in the scheduling queue. It is frozen when the pod is admitted to the queue, because a
// heap whose keys change under it loses its order.
type Key struct {
	// Committing is set for members of a plan that is being carried out, or that an earlier scheduler has left
	// unfinished. They come first, so that assignments idle as briefly as possible.
	Committing bool
	// Precedence says when the pod is due and whether its priority is a part of that already.
	Precedence
	// Priority is the lowest priority among the group's members: a group is as important as its least member.
	Priority int32
	// Degraded is set for groups that have started and have lost members since.
	Degraded bool
	// Time is the creation of the group, or the queueing time of a pod without one.
	Time time.Time
	// Tie makes the order total.
	Tie string
}

// Precedence is the place that the queue's classes give a pod. With the zero value, which all pods have without
// classes, priority and time decide.
type Precedence struct {
	// Ages is set for pods that gain precedence by waiting: they are ordered by when they are due, after all that do not
	// age.
	Ages bool
	// Wait is the time from a pod's arrival to when it is due.
	Wait time.Duration
}

// Less reports whether a is to be scheduled before b. It does not depend on the present time.
func (a Key) Less(b Key) bool {
	switch {
	case a.Committing != b.Committing:
		return a.Committing
	case a.Ages != b.Ages:
		return b.Ages
	case !a.Ages && a.Priority != b.Priority:
		return a.Priority > b.Priority
	case !a.Ages && a.Degraded != b.Degraded:
		return a.Degraded
	}
	if due, other := a.due(), b.due(); !due.Equal(other) {
		return due.Before(other)
	}
	if !a.Time.Equal(b.Time) {
		return a.Time.Before(b.Time)
	}
	return a.Tie < b.Tie
}

func (a Key) due() time.Time { return a.Time.Add(a.Wait) }

// freeze gives the member its place in the queue.
func (m *member) freeze() {
	g := m.group
	m.key = placeOf(g, m)
	m.key.Committing = (g.plan != nil || g.attempts.resumes) && !g.started()
	m.keyed = true
}

// placeOf is the group's place in the queue, for which m stands.
func placeOf(g *group, m *member) Key {
	if g.started() && !g.degraded() && g.plan == nil {
		// As of an ordinary pod, the member's own priority and age count.
		return Key{Priority: m.Priority, Precedence: m.Precedence, Time: m.Created, Tie: string(m.UID)}
	}
	k := Key{Priority: g.census.priority(), Precedence: g.census.precedence(), Degraded: g.degraded()}
	if s := g.spec(); s != nil {
		k.Time, k.Tie = s.Created, string(s.UID)
	}
	return k
}
