package preempt

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// grace is how much longer than its grace period a pod may take to terminate. After that it is late, and other pods
	// may be chosen.
	grace = 30 * time.Second
	// planAge is how long a proposal may be used. It must last until the gang is tried again and does not fit: otherwise,
	// with many gangs or slow plans, searches would repeat without an eviction.
	planAge = 30 * time.Second
	// patience is how long an attempt lasts that awaits no pod. It ends no search that has begun, or the next attempt
	// would search at the same time.
	patience = time.Minute
	// maxRejected is how many proposals in a row filters may reject.
	maxRejected = 4
	// outdatedPause is the pause after an outdated proposal, in which assumed pods are bound: the account of capacity does
	// not know assumed pods. It doubles with each proposal that is rejected.
	outdatedPause = 100 * time.Millisecond
)

// attempt is the state of an eviction for one gang or pod: victims are searched for, evicted and awaited.
type attempt struct {
	request *request
	// searching is set during a search for victims, and found is its result until it is used.
	searching bool
	found     *proposal
	// said is what filters have found when proposals were checked, and rejected counts the proposals that did not help.
	said     findings
	rejected int
	// awaited are the pods that have to terminate: those that are evicted, and others where members will be placed. After
	// that a single pod goes to node.
	awaited []*v1.Pod
	node    string
	// until is when the awaited pods should have terminated, zero while they are being evicted. late is set when they have
	// not, so that others may be chosen.
	until time.Time
	late  bool
	// idle is since when no pod is awaited, zero while some are.
	idle time.Time
	// stock is set while the scheduler's own preemption evicts for the pod, to when the pod was last tried again.
	stock time.Time
	// landing is set if a gang of lower priority is being bound, which can be evicted only after that.
	landing bool
}

// step is what to do for a gang or a pod.
type step uint8

const (
	// toWait means that there is nothing to do yet.
	toWait step = iota
	// toSearch means that victims have to be searched for.
	toSearch
	// toUsePlan means that the result of the search has to be checked and used.
	toUsePlan
	// toRestart means that all awaited pods have terminated, and a new attempt begins.
	toRestart
	// toChooseOthers means that awaited pods are late, so that others may be chosen.
	toChooseOthers
	// toGiveUp means that the attempt ends.
	toGiveUp
)

// awaits reports whether pods have to terminate before anything else is done.
func (w *attempt) awaits() bool { return len(w.awaited) > 0 && !w.late }

// overdue reports whether the awaited pods should have terminated.
func (w *attempt) overdue(now time.Time) bool { return !w.until.IsZero() && !now.Before(w.until) }

// ask returns what to do when the gang or pod does not fit; left is how many awaited pods still exist.
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

// review returns what to do as time passes; left is how many awaited pods still exist.
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

// reject counts a proposal that does not help or is outdated. It returns the pause before the next search, or false to
// give up.
func (w *attempt) reject(outdated bool) (pause time.Duration, again bool) {
	if outdated {
		pause = outdatedPause << w.rejected
	}
	w.rejected++
	return pause, w.rejected < maxRejected
}

// await makes the attempt wait for the pods, until the ends of their grace periods.
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

// leaves reports whether the pod terminates in time: when a late one will end is not known.
func leaves(pod *v1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Before(pod.DeletionTimestamp.Add(grace))
}
