package gang

import (
	"math"
	"time"
)

// phase is where a group is in its run: from the first member that has a node to the last.
type phase uint8

const (
	// noRun is the phase of groups that have none.
	noRun phase = iota
	// remembered ones had placed their minimum under an earlier scheduler; their members have yet to be seen.
	remembered
	// begun ones have members with a node, and never had the minimum.
	begun
	// placed ones have had the minimum placed in this run.
	placed
	phases
)

// milestone is what moves a group from one phase to another.
type milestone uint8

const (
	// runs, isOver: a member has a node or enough have succeeded, or that is not so any more.
	runs milestone = iota
	isOver
	// isMet: the minimum is placed. isRecalled: an earlier scheduler had placed it.
	isMet
	isRecalled
	// isPlanned: a plan is made. It is for a new run if none goes on.
	isPlanned
)

// phaseTable holds the phase that follows, by phase and milestone. What is left out of a row leaves the phase as it is.
var phaseTable = [phases]map[milestone]phase{
	noRun:      {runs: begun, isMet: placed, isRecalled: remembered},
	remembered: {runs: placed, isMet: placed, isPlanned: noRun},
	begun:      {isOver: noRun, isMet: placed, isRecalled: placed},
	placed:     {isOver: noRun},
}

// run is what is known of one run of a group.
type run struct {
	phase phase
	// recalled is set once the status of an earlier scheduler was read.
	recalled bool
	// reached is the minimum that was placed last; nil if an earlier scheduler has placed it and nothing says what it was.
	reached *Minimum
	// quorumAt is when enough members existed for the first time.
	quorumAt time.Time
}

// reach moves the run to the phase that follows the milestone, and reports whether that is another one.
func (r *run) reach(m milestone) bool {
	to, listed := phaseTable[r.phase][m]
	changed := listed && to != r.phase
	if listed {
		r.phase = to
	}
	return changed
}

// needed is what has to be placed for the group not to count as degraded: the minimum, but no more of it than was
// placed before.
func (r *run) needed(s *Spec) Minimum {
	switch {
	case s == nil:
		return Minimum{Total: math.MaxInt}
	case r.reached == nil:
		return s.Minimum
	default:
		return r.reached.Within(s.Minimum)
	}
}

// hadMinimum reports whether the minimum was placed once in this run.
func (r *run) hadMinimum() bool { return r.phase == placed || r.phase == remembered }

// Past is what is known of a group from an earlier scheduler.
type Past uint8

const (
	// NotStarted means that the minimum was not placed.
	NotStarted Past = iota
	// HadStarted means that it was.
	HadStarted
	// HadGrown means that it was, and has been raised since.
	HadGrown
)
