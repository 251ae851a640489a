package defragment

import (
	"time"

	"berth.dev/berth/pkg/eviction"
)

const (
	// comesBack is how long the replacement of a pod may take to have a node once the pod has gone.
	comesBack = 2 * time.Minute
	// starts is how long the gang may take to start once all pods have moved.
	starts = time.Minute
	// Pause is for how long no pod is moved after a move that did not go as planned.
	Pause = time.Hour
)

// Moves follows the moves for one gang: each pod is evicted when the one before it runs elsewhere.
type Moves struct {
	// left is how many pods have yet to move, with the one whose turn it is.
	left  int
	stage stage
	// since is when the stage began.
	since time.Time
}

type stage uint8

const (
	// due pods are to be evicted.
	due stage = iota
	// leaving pods terminate.
	leaving
	// returning pods are gone, and their replacements have no node yet.
	returning
	// starting gangs have the room that they need.
	starting
)

// NewMoves returns the moves of a number of pods.
func NewMoves(pods int) Moves { return Moves{left: pods} }

// Seen is what there is now.
type Seen struct {
	// Waits is set while the gang waits to start.
	Waits bool
	// Noticed is set once the notice of the pods has ended.
	Noticed bool
	// Allowed is set if the PodDisruptionBudgets allow the eviction of the pod whose turn it is.
	Allowed bool
	// Gone is set if that pod is not there any more, and Back if its replacement has a node.
	Gone, Back bool
	// Grace is its grace period.
	Grace time.Duration
}

// Step is what is to be done.
type Step uint8

// The steps of moves.
const (
	// Wait means that there is nothing to do yet.
	Wait Step = iota
	// Evict means that the pod whose turn it is goes now.
	Evict
	// Next means that it is the turn of the next pod, or of the gang after the last.
	Next
	// Done means that the gang does not wait any more, and that no pod is away.
	Done
	// Stop means that something has not gone as planned. No other pod is moved.
	Stop
)

// Step returns what to do now, and for Stop why.
func (m *Moves) Step(s Seen, now time.Time) (step Step, why string) {
	took := now.Sub(m.since)
	switch {
	case !s.Waits && (m.stage == due || m.stage == starting):
		return Done, ""
	case m.stage == starting:
		if took > starts {
			return Stop, "the gang does not start although the pods have moved"
		}
	case m.stage == due && s.Gone: // it has ended on its own
		return m.next(now), ""
	case m.stage == due && !s.Noticed:
	case m.stage == due && !s.Allowed:
		return Stop, "a PodDisruptionBudget does not allow that it goes"
	case m.stage == due:
		m.stage, m.since = leaving, now
		return Evict, ""
	case m.stage == leaving && s.Gone:
		m.stage, m.since = returning, now
	case m.stage == leaving:
		if took > s.Grace+eviction.Grace {
			return Stop, "it does not terminate"
		}
	case s.Back:
		return m.next(now), ""
	case took > comesBack:
		return Stop, "nothing that replaces it has a node"
	}
	return Wait, ""
}

// Left is how many pods have yet to move.
func (m *Moves) Left() int { return m.left }

func (m *Moves) next(now time.Time) Step {
	m.left--
	if m.stage, m.since = due, now; m.left == 0 {
		m.stage = starting
	}
	return Next
}
