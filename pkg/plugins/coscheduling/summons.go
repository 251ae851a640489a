package coscheduling

import (
	"time"

	"berth.dev/berth/pkg/gang"
)

// summons are those that the waker is to have tried again at its next turn, together with the gangs that it invites:
// not at once, as a cycle of theirs may not have ended yet, and what is woken within its own cycle goes on with a
// back-off.
type summons struct {
	// pods were turned away from capacity that was promised to a gang.
	pods []gang.Ref
	// requests may go on, as pods to evict have been looked for, or evicted.
	requests []*request
}

// wake has the pods tried again.
func (w *waker) wake(pods []gang.Ref) {
	w.mu.Lock()
	w.summons.pods = append(w.summons.pods, pods...)
	w.mu.Unlock()
	w.look()
}

// resume has the gang or the pod of the request tried again.
func (w *waker) resume(r *request) {
	w.mu.Lock()
	w.summons.requests = append(w.summons.requests, r)
	w.mu.Unlock()
	w.look()
}

// summon returns what has those who were summoned tried again.
func (w *waker) summon(now time.Time) []gang.Effects {
	w.mu.Lock()
	s := w.summons
	w.summons = summons{}
	w.mu.Unlock()
	effects := make([]gang.Effects, 0, 1+len(s.requests))
	for _, r := range s.requests {
		if r.only != nil {
			s.pods = append(s.pods, refOf(r.only))
		} else if !w.plans.pace.Recall(r.id, now) {
			effects = append(effects, w.ledger.Resume(r.id, now))
		}
	}
	return append(effects, gang.Effects{Activate: s.pods})
}
