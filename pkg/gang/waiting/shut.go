package waiting

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang/read"
)

// Holds tell what is kept for gangs.
type Holds interface {
	// AgainstPod returns what is kept and the pod may not use.
	AgainstPod(pod *v1.Pod) []*capacity.Kept
	// State is another when something else is kept.
	State() any
}

const (
	// mostLooks is for how many pods it is found out at once whether they may use what is free now.
	mostLooks = 500
	// lookAnyway is how often that is found out for all while only time passes: pods that have waited for long may enter.
	lookAnyway = 10 * time.Second
)

// shut is the pods for which the account has room, but only where it is kept for gangs. Which of them may use it
// differs: one that is gone by the start of the gang may, behind others that may not. So those that come first are
// looked at when there is more room, and one after the other, some each second, when anything has changed.
type shut struct {
	holds Holds
	// pods are in the order of the queue; some are done. The next to look at is at, and left is how many are to be looked
	// at since that was begun.
	pods     []*waiting
	at, left int
	// seen is what there was then. It begins again at due at the latest, and does nothing before rests.
	seen       [2]any
	due, rests time.Time
}

// slotsFor is how many pods like that one have room by the account, of what is not kept from them.
func (b *Backlog) slotsFor(key capacity.ShapeKey, pod *v1.Pod) int {
	slots, _ := b.capacity.Slots(key)
	if slots == 0 {
		return 0
	}
	kept := b.shut.holds.AgainstPod(pod)
	if len(kept) == 0 {
		return slots
	}
	return b.capacity.BestBeside([]capacity.Need{{Shape: key, Count: slots}}, nil, kept)
}

// shutOut has the pod wait until it may use what is free.
func (b *Backlog) shutOut(w *waiting) {
	s := &b.shut
	i, _ := slices.BinarySearchFunc(s.pods, w, first)
	s.pods = slices.Insert(s.pods, i, w)
	if i <= s.at {
		s.at++
	}
}

// letIn returns those of the pods that were shut out and may use now what is free. gained is set if there is more room.
func (b *Backlog) letIn(gained bool, now time.Time) (next []*v1.Pod) {
	s := &b.shut
	if len(s.pods) == 0 || !gained && now.Before(s.rests) {
		return nil
	}
	there := [2]any{b.capacity.Looks.State(), s.holds.State()}
	if there != s.seen || !now.Before(s.due) {
		s.seen, s.left, s.due = there, len(s.pods), now.Add(lookAnyway)
	}
	from := s.at
	if gained || from >= len(s.pods) {
		from = 0
	}
	looked := s.pods[from:min(from+mostLooks, len(s.pods))]
	if !gained {
		if s.left <= 0 {
			return nil
		}
		s.left -= len(looked)
		s.rests = now.Add(LookEvery)
	}
	stay := 0
	for _, w := range looked {
		if now := b.members.Pod(read.RefOf(w.pod)); now != nil {
			w.pod = now // it may say by now that it may use what is kept
		}
		switch {
		case w.done:
		case b.trying < b.atOnce && b.slotsFor(w.shape.key, w.pod) > w.shape.trying:
			next = append(next, b.try(w, now))
		default:
			stay++
		}
	}
	if !gained {
		s.at = from + stay
	}
	s.pods = slices.DeleteFunc(s.pods, func(w *waiting) bool { return w.done || !w.triedAt.IsZero() })
	return next
}
