package sla

import "math"

// Objective is what a pod wants of its node; 0 is nothing.
type Objective struct {
	// LatencyMs is the most that the latency may be.
	LatencyMs float64
	// Throughput is the least that the throughput may be, in the unit of the figures.
	Throughput float64
}

// None reports whether there is no objective.
func (o Objective) None() bool { return o == Objective{} }

// Figures are the measurements of a node; 0 is unknown.
type Figures struct{ LatencyMs, Throughput float64 }

// The points of a node, from 0 to 100.
const (
	mostPoints = 100
	// spareLoss is the loss of a node that is infinitely faster than needed.
	spareLoss = 20
	// metPoints are the points of a node that just meets the objective.
	metPoints = 60
	// unknownPoints are the points of a node with unknown figures: less than one that meets the objective, more than one
	// that misses it.
	unknownPoints = 50
	// missedPoints are the points of a node that just misses the objective, and doublingLoss is lost each time that the
	// ratio doubles.
	missedPoints = 40
	doublingLoss = 10
)

// Loss is the difference of a node to 100 points, by reason. At most one of them is not 0.
type Loss struct {
	// Spare is for nodes that are better than needed, Tight for those that meet the objective with less than the headroom,
	// Missed for those that miss it, and Unknown for those with unknown figures.
	Spare, Tight, Missed, Unknown float64
}

// Sum returns all that is lost.
func (l Loss) Sum() float64 { return l.Spare + l.Tight + l.Missed + l.Unknown }

// Judge returns what a node with these figures loses. Headroom is the part of the objective, from 0 to less than 1,
// that should be left.
//
// Of nodes that meet the objective, those win that do it with the least excess beyond the headroom. The most headroom
// would send every pod with an objective to the fastest nodes, until the next measurement shows them slow, and leave
// none for the pod that can run nowhere else; the least excess without headroom would put pods where the next one
// breaks the objective, as figures are of the time before the pod came. The difference is small, so that other plugins
// of the profile still have a say among nodes that meet the objective. What is missed counts by its logarithm: twice as
// slow is as much worse than slow as four times is than twice.
func Judge(want Objective, have Figures, headroom float64) Loss {
	use, known := 0.0, true
	if want.LatencyMs > 0 {
		use, known = have.LatencyMs/want.LatencyMs, have.LatencyMs > 0
	}
	if want.Throughput > 0 {
		if have.Throughput > 0 {
			use = max(use, want.Throughput/have.Throughput)
		} else {
			known = false
		}
	}
	edge := 1 - headroom
	switch {
	case use > 1:
		// One figure is enough to know that it is missed.
		return Loss{Missed: min(mostPoints-missedPoints+doublingLoss*math.Log2(use), mostPoints)}
	case !known:
		return Loss{Unknown: mostPoints - unknownPoints}
	case use > edge:
		return Loss{Tight: (mostPoints - metPoints) * (use - edge) / headroom}
	default:
		return Loss{Spare: spareLoss * (1 - use/edge)}
	}
}
