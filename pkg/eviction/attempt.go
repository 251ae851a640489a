package eviction

import "time"

const (
	// Grace is how much longer than its own grace period a pod may take to go. After that something holds it, and
	// others may be chosen.
	Grace = 30 * time.Second
	// planAge is how long a plan is good for. It is checked before anything is evicted. It must last until the
	// gang has its turn again and does not fit: with a shorter one many gangs, or one that plans for long, would
	// search again and again, and evict nothing.
	planAge = 30 * time.Second
	// patience is how long an attempt lasts that waits for no pod.
	patience = time.Minute
	// maxRejected is how many plans in a row may turn out not to help when filters see them.
	maxRejected = 4
	// OutdatedPause is the pause after a plan that was out of date, for the state to learn of pods that are being
	// bound. It doubles each time.
	OutdatedPause = 100 * time.Millisecond
)

// Attempt follows the eviction for one gang or pod: victims are searched for, evicted and awaited. Its owner
// reports what happens, and asks what to do next.
type Attempt struct {
	stage stage
	// planned is when the plan was found.
	planned time.Time
	// Until is when the awaited pods have had their time, so that others may be chosen, and late is set when they are.
	Until time.Time
	late  bool
	// idle is when no pod was awaited last, zero while some are.
	idle time.Time
	// rejected counts the plans that did not help.
	rejected int
}

type stage uint8

const (
	// resting attempts have no plan, and none is searched for.
	resting stage = iota
	searching
	planned
	// evicting attempts send the requests to evict, awaiting ones wait for the pods to terminate.
	evicting
	awaiting
)

// Step is what the owner of an attempt has to do.
type Step uint8

// The steps of an attempt.
const (
	// Wait means that there is nothing to do yet.
	Wait Step = iota
	// Search means that victims have to be searched for.
	Search
	// WaitForSearch means that they are.
	WaitForSearch
	// UsePlan means that the plan is to be checked and carried out.
	UsePlan
	// Restart means that all awaited pods have gone: what was known of them is no longer of use.
	Restart
	// ChooseOthers means that awaited pods are late, so that others may be chosen.
	ChooseOthers
	// GiveUp means that the attempt ends.
	GiveUp
)

// NewAttempt returns an attempt that has yet to begin.
func NewAttempt(now time.Time) Attempt { return Attempt{idle: now} }

// Ask returns what to do when the gang or pod does not fit, while left of the awaited pods are there.
func (a *Attempt) Ask(left int, now time.Time) Step {
	switch a.stage {
	case searching:
		return WaitForSearch
	case planned:
		if now.Sub(a.planned) < planAge {
			return UsePlan
		}
	case evicting, awaiting:
		switch {
		case left == 0:
			return Restart
		case !a.Overdue(now):
			return Wait
		}
		a.chooseOthers(now)
		return ChooseOthers
	}
	return Search
}

// Review returns what to do as time passes, while left of the awaited pods are there.
func (a *Attempt) Review(left int, now time.Time) Step {
	switch {
	case a.Late(left):
		a.idle = now
	case !a.idle.IsZero():
		if now.Sub(a.idle) > patience {
			return GiveUp
		}
	case a.stage == evicting:
	case left == 0:
		a.idle = now
	case a.Overdue(now):
		a.chooseOthers(now)
		return ChooseOthers
	}
	return Wait
}

func (a *Attempt) chooseOthers(now time.Time) { a.stage, a.late, a.idle = resting, true, now }

// Searching reports to the attempt that victims are searched for.
func (a *Attempt) Searching() { a.stage = searching }

// Planned reports to the attempt that the search has ended, with a plan or without.
func (a *Attempt) Planned(now time.Time) { a.stage, a.planned = planned, now }

// Taken reports to the attempt that its plan is being checked.
func (a *Attempt) Taken() { a.stage = resting }

// Rejected reports to the attempt that the plan does not help, or was out of date. It returns after which pause to
// search again, or false to give up.
func (a *Attempt) Rejected(outdated bool) (pause time.Duration, again bool) {
	if a.rejected++; outdated {
		pause = OutdatedPause << (a.rejected - 1)
	}
	return pause, a.rejected < maxRejected
}

// Evicting reports to the attempt that pods are being evicted.
func (a *Attempt) Evicting() { *a = Attempt{stage: evicting} }

// Awaiting reports to the attempt that pods terminate, which should have gone at a time.
func (a *Attempt) Awaiting(gone time.Time) {
	a.stage, a.Until, a.idle = awaiting, gone.Add(Grace), time.Time{}
}

// Overdue reports whether the awaited pods have had their time.
func (a *Attempt) Overdue(now time.Time) bool { return !a.Until.IsZero() && !now.Before(a.Until) }

// Late reports whether others may be chosen in place of awaited pods while some are left.
func (a *Attempt) Late(left int) bool { return a.late && left > 0 }

// GivenUp reports to the attempt that nothing helps, while pods are late. It begins again.
func (a *Attempt) GivenUp() {
	if a.rejected = 0; a.stage == planned {
		a.stage = resting
	}
}
