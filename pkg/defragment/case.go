package defragment

import (
	"time"

	"berth.dev/berth/pkg/eviction"
)

const (
	// Takes is how long a move takes: the pod terminates, and its replacement is created and placed.
	Takes = time.Minute
	// AtOnce is how many pods are moved for one gang at most.
	AtOnce = 16
	// Settled is for how long a pod runs before it may be moved, so that none is moved again and again.
	Settled = 2 * time.Minute
)

// Case is a gang that could start as soon as some pods are elsewhere.
type Case struct {
	// Start is when the gang is told to start, and MilliGPUs what its members ask for.
	Start     time.Time
	MilliGPUs int64
	Moves     []Move
}

// Move is what is lost with one pod.
type Move struct {
	// Lost is the work that its eviction loses, as eviction.Work has it, and MilliGPUs are idle while it moves.
	Lost, MilliGPUs int64
}

// Cost is what the move costs, in thousandths of GPU minutes.
func (m *Move) Cost() int64 { return m.Lost + m.MilliGPUs*int64(Takes/time.Minute) }

// Balance is what moves gain and cost.
type Balance struct {
	// Sooner is by how much the gang starts sooner.
	Sooner time.Duration
	// Gained and Lost are in thousandths of GPU minutes.
	Gained, Lost int64
}

// Weigh says what the moves gain and cost if they begin at that time, after the notice that pods want.
func (c *Case) Weigh(now time.Time, notice time.Duration) Balance {
	takes := notice + time.Duration(len(c.Moves))*Takes
	b := Balance{Sooner: max(c.Start.Sub(now.Add(takes)), 0)}
	b.Gained = int64(b.Sooner/time.Minute) * c.MilliGPUs
	for i := range c.Moves {
		b.Lost += c.Moves[i].Cost()
	}
	return b
}

// Pays reports whether the moves gain more than they cost.
func (b *Balance) Pays() bool { return b.Gained > b.Lost }

// Limits are what moves may cost in any hour.
type Limits struct {
	// Moves is how many pods may be moved; with 0 none is.
	Moves int
	// LostGPUHours is the work that may be lost.
	LostGPUHours int
}

// milliMinutes is a GPU hour in thousandths of GPU minutes.
const milliMinutes = 60 * 1000

// Budget counts what moves have cost. Its zero value has spent nothing.
type Budget struct{ moves, lost eviction.Hourly }

// Allows reports whether this many moves, which lose this much work, are within the limits now.
func (b *Budget) Allows(moves int, lost int64, most Limits, now time.Time) bool {
	return int64(moves) <= b.moves.Left(int64(most.Moves), now) &&
		lost <= b.lost.Left(int64(most.LostGPUHours)*milliMinutes, now)
}

// Take counts the moves if they are within the limits, and reports whether they are.
func (b *Budget) Take(moves int, lost int64, most Limits, now time.Time) bool {
	if !b.Allows(moves, lost, most, now) {
		return false
	}
	b.moves.Spend(int64(moves), now)
	b.lost.Spend(lost, now)
	return true
}
