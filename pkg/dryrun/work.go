package dryrun

import (
	"context"
	"errors"
	"time"
)

const (
	// sliceVisits and sliceTime bound what one scheduling cycle spends on a plan, in visits of nodes by the filters or
	// what costs about as much, and in time: others in the queue wait for no more. A plan of a few classes needs a
	// fraction of it.
	sliceVisits = 20_000
	sliceTime   = 100 * time.Millisecond
	// SliceRest is the pause after a slice of a plan, beside what the place in the queue gives to others.
	SliceRest = sliceTime / 2
	// planVisits is after how much work a plan comes to an end: no other order or place is tried, and no member beyond
	// the minimum; manyClassesVisits is that for gangs of many classes.
	planVisits        = 20 * sliceVisits
	manyClassesVisits = 5 * sliceVisits
	// ManyClasses is how many classes a gang may have whose members are planned as carefully as the scheduler places
	// single pods. Of one that has more each class is compared on manyClassesEnough nodes only.
	ManyClasses       = 32
	manyClassesEnough = 16
	// preFilterVisits is what PreFilter costs; addsPerVisit and candidatesPerVisit are how many pods are counted in,
	// and how many candidates are ranked again, for the cost of a visit.
	preFilterVisits    = 10
	addsPerVisit       = 8
	candidatesPerVisit = 32
)

// errAbandoned ends the work on a plan that is no longer waited for.
var errAbandoned = errors.New("the plan was abandoned")

// Work is the work on one plan. It may take several scheduling cycles: when the slice of one is used up, it pauses
// between two members until the next.
type Work struct {
	// Ctx is that of the present cycle.
	Ctx context.Context
	// yield ends the cycle's slice and returns in the next one, or returns false if there will be none; nil if the work
	// may not pause.
	yield func() bool
	// visits is what was spent since began, earlier what was before that.
	visits, earlier int
	began           time.Time
	// many is set if the gang has many classes.
	many bool
}

// begin begins a slice.
func (w *Work) begin(ctx context.Context) {
	w.Ctx, w.began = ctx, time.Now()
	w.earlier += w.visits
	w.visits = 0
}

// resume begins the slice again: what it took to go on is not taken from it, or a plan of many members would get no
// further, and does not count against the plan.
func (w *Work) resume() { w.began, w.visits = time.Now(), 0 }

func (w *Work) spend(visits int) { w.visits += visits }

// spent reports whether so much work has gone into the plan that it has to come to an end.
func (w *Work) spent() bool {
	most := planVisits
	if w.many {
		most = manyClassesVisits
	}
	return w.yield != nil && w.earlier+w.visits > most
}

// pause lets the others in the queue go first if the slice is used up.
func (w *Work) pause(d *Run) error {
	if w.yield == nil || (w.visits < sliceVisits && time.Since(w.began) < sliceTime) {
		return nil
	}
	reserved := d.reserved
	d.close()
	others := d.devicesOfOthers(reserved)
	if !w.yield() {
		return errAbandoned
	}
	if err := d.refresh(w.Ctx, reserved, others); err != nil {
		return err
	}
	w.resume()
	return nil
}
