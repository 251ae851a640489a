package preempt

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// grace is how much longer than its own grace period a pod may take to go. After that something holds it, and others
	// may be chosen.
	grace = 30 * time.Second
	// planAge is how long a plan is good for. It is checked before anything is evicted. It must last until the gang has
	// its turn again and does not fit: with a shorter one many gangs, or one that plans for long, would search again and
	// again, and evict nothing.
	planAge = 30 * time.Second
	// patience is how long an attempt lasts that waits for no pod. It ends no search that has begun, or the next attempt
	// would search at the same time.
	patience = time.Minute
	// maxRejected is how many plans in a row may turn out not to help when filters see them.
	maxRejected = 4
	// outdatedPause is the pause after a plan that was out of date, for pods to be bound that are assumed: the account of
	// capacity does not know those. It doubles with each plan that is rejected.
	outdatedPause = 100 * time.Millisecond
)

// attempt is all that is known of an eviction for one gang or pod: victims are searched for, evicted and awaited.
type attempt struct {
	request *request
	// searching is set while victims are searched for, and found is what a search has found until it is used.
	searching bool
	found     *proposal
	// said is what filters said of classes and nodes when proposals were checked, and rejected counts those that did not
	// help.
	said     findings
	rejected int
	// awaited are the pods that have to go: those that are being evicted, and others that terminate where members will be
	// placed. A single pod goes to node then.
	awaited []*v1.Pod
	node    string
	// until is when the awaited pods have had their time, zero while they are being evicted. Late is set when they have
	// had it, so that others may be chosen.
	until time.Time
	late  bool
	// idle is when no pod was awaited last, zero while some are.
	idle time.Time
	// stock is set while the scheduler's own preemption evicts for the pod, to when that was looked at last.
	stock time.Time
	// landing is set if a gang of lower priority is being bound, which can be evicted when it is.
	landing bool
}

// step is what to do for a gang or a pod.
type step uint8

const (
	// toWait means that there is nothing to do yet.
	toWait step = iota
	// toSearch means that victims have to be searched for.
	toSearch
	// toUsePlan means that what was found is to be checked and carried out.
	toUsePlan
	// toRestart means that all awaited pods have gone: what was known of them is no longer of use.
	toRestart
	// toChooseOthers means that awaited pods are late, so that others may be chosen.
	toChooseOthers
	// toGiveUp means that the attempt ends.
	toGiveUp
)

// awaits reports whether pods have to go before anything else is done.
func (w *attempt) awaits() bool { return len(w.awaited) > 0 && !w.late }

// overdue reports whether the awaited pods have had their time.
func (w *attempt) overdue(now time.Time) bool { return !w.until.IsZero() && !now.Before(w.until) }

// ask returns what to do when the gang or pod does not fit, while left of the awaited pods are there.
func (w *attempt) ask(left int, now time.Time) step {
	switch {
	case w.awaits() && left == 0:
		return toRestart
	case w.awaits() && w.overdue(now):
		w.late, w.idle = true, now
		return toChooseOthers
	case w.searching || w.awaits():
		return toWait
	case w.found != nil && now.Sub(w.found.at) < planAge:
		return toUsePlan
	}
	return toSearch
}

// review returns what to do as time passes, while left of the awaited pods are there.
func (w *attempt) review(left int, now time.Time) step {
	switch {
	case w.late && left > 0:
		w.idle = now
	case !w.idle.IsZero():
		if now.Sub(w.idle) > patience && !w.searching {
			return toGiveUp
		}
	case w.until.IsZero():
	case left == 0:
		w.idle = now
	default:
		if w.overdue(now) {
			w.late, w.idle = true, now
			return toChooseOthers
		}
	}
	return toWait
}

// reject notes that what was found does not help, or was out of date. It returns after which pause to search again, or
// false to give up.
func (w *attempt) reject(outdated bool) (pause time.Duration, again bool) {
	if outdated {
		pause = outdatedPause << w.rejected
	}
	w.rejected++
	return pause, w.rejected < maxRejected
}

// await has the attempt wait for the pods, which should have gone at the end of their grace periods.
func (w *attempt) await(pods []*v1.Pod, now time.Time) {
	for _, pod := range pods {
		gone := now
		if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
			gone = now.Add(time.Duration(*s) * time.Second)
		}
		if pod.DeletionTimestamp != nil {
			gone = pod.DeletionTimestamp.Time
		}
		if gone = gone.Add(grace); gone.After(w.until) {
			w.until = gone
		}
	}
	w.idle = time.Time{}
}

// leaves reports whether the pod is on its way out. When one that is late will have gone cannot be foreseen.
func leaves(pod *v1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Before(pod.DeletionTimestamp.Add(grace))
}
