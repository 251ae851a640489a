package plan

import "context"

const (
	// planVisits is the work budget of a plan, in visits of nodes by the filters or what costs about as much. When it is
	// used up, no other order or place is tried, and no member beyond the minimum. manyClassesVisits is the budget for
	// gangs of many classes. A plan of a few classes needs a fraction of it.
	planVisits        = 20_000
	manyClassesVisits = 40_000
	// manyClasses is how many classes a gang may have whose members are planned as carefully as the scheduler places
	// single pods. Those of one that has more compare comparedByMany nodes together, and at least one each.
	manyClasses    = 32
	comparedByMany = 2048
	// preFilterVisits is what PreFilter costs; addsPerVisit and candidatesPerVisit are how many pods are counted in,
	// and how many candidates are ranked again, for the cost of a visit.
	preFilterVisits    = 10
	addsPerVisit       = 8
	candidatesPerVisit = 32
)

// Work is the work on one plan, in one scheduling cycle.
type Work struct {
	Ctx context.Context
	// bounded is set if the plan has a work budget; visits counts the work.
	bounded bool
	visits  int
	// many is set if the gang has too many classes to compare each on more than a few nodes.
	many bool
	// examined counts the nodes that were filtered.
	examined int
}

func (w *Work) spend(visits int) { w.visits += visits }

// spent reports whether the work budget of the plan is used up.
func (w *Work) spent() bool {
	most := planVisits
	if w.many {
		most = manyClassesVisits
	}
	return w.bounded && w.visits > most
}
