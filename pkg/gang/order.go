package gang

import "time"

// Key is the place of a pod in the scheduling queue. It is frozen when the pod is admitted to the queue, because a
// heap whose keys change under it loses its order.
type Key struct {
	// Committing is set for members of a plan that is being carried out: they come before everything else, so that
	// assignments are held idle for as short a time as possible.
	Committing bool
	// Priority is the lowest priority among the group's members: a group is as important as its least member.
	Priority int32
	// Degraded is set for groups that have started and have lost members since.
	Degraded bool
	// Time is the creation of the group, or the queueing time of a pod without one.
	Time time.Time
	// Tie makes the order total.
	Tie UID
}

// Less reports whether a is to be scheduled before b.
func (a Key) Less(b Key) bool {
	switch {
	case a.Committing != b.Committing:
		return a.Committing
	case a.Priority != b.Priority:
		return a.Priority > b.Priority
	case a.Degraded != b.Degraded:
		return a.Degraded
	case !a.Time.Equal(b.Time):
		return a.Time.Before(b.Time)
	default:
		return a.Tie < b.Tie
	}
}
