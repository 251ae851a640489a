package coscheduling

import (
	"context"
	"iter"
	"sync"
	"time"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/retry"
)

// planning is a plan that is being made, in the leader's scheduling cycles alone: between them it stands still.
type planning struct {
	turn gang.Turn
	work work
	next func() (struct{}, bool)
	stop func()
	// result and err are what came of it; took is how long the cycles worked on it.
	result *arrangement
	err    error
	took   time.Duration
	parked time.Time
}

// newPlanning begins a plan for the gang.
func (c *coordinator) newPlanning(id gang.ID, turn gang.Turn, nodes []fwk.NodeInfo) *planning {
	p := &planning{turn: turn}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.work.yield = func() bool { return yield(struct{}{}) }
		p.result, p.err = c.arrange(&p.work, id, turn, nodes)
	})
	return p
}

// slice works on the plan for the slice of one cycle, and reports whether it is done and how long that took.
func (p *planning) slice(ctx context.Context) (done bool, took time.Duration) {
	began := time.Now()
	p.work.begin(ctx)
	_, more := p.next()
	took = time.Since(began)
	p.took += took
	return !more, took
}

// serves reports whether the plan is of any use for what the gang asks for now. Members that have come since may be left out.
func (p *planning) serves(turn gang.Turn) bool {
	if !p.turn.Need.Equal(turn.Need) || len(turn.Members) < len(p.turn.Members) {
		return false
	}
	now := make(map[gang.UID]gang.Member, len(turn.Members))
	for _, m := range turn.Members {
		now[m.UID] = m
	}
	for _, m := range p.turn.Members {
		if is, there := now[m.UID]; !there || is.Class != m.Class || is.Role != m.Role {
			return false
		}
	}
	return true
}

const (
	// parkedAtMost bounds the plans of one namespace that stand still at a time, each of which takes memory.
	parkedAtMost = 2
	// parkedFor is how long one may stand still before another takes its place.
	parkedFor = time.Minute
)

// plans owns the plans that stand still until the next cycle of their leaders, and knows whose turn it is to plan.
type plans struct {
	pace retry.Pace

	mu     sync.Mutex
	parked map[gang.ID]*planning
}

// take hands over the plan of the gang, or nil.
func (s *plans) take(id gang.ID) *planning {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parked[id]
	delete(s.parked, id)
	return p
}

// park keeps the plan until it is taken or dropped, and reports whether there was room for it. If not it is dropped.
func (s *plans) park(id gang.ID, p *planning, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := 0
	for other, o := range s.parked {
		switch {
		case other.Namespace != id.Namespace:
		case now.Sub(o.parked) > parkedFor:
			o.stop()
			delete(s.parked, other)
		default:
			others++
		}
	}
	if others >= parkedAtMost {
		p.stop()
		return false
	}
	if s.parked == nil {
		s.parked = map[gang.ID]*planning{}
	}
	p.parked = now
	s.parked[id] = p
	return true
}

// goesOn returns when the plan of the gang may go on, if it stands still.
func (s *plans) goesOn(id gang.ID) (at time.Time, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parked[id]; p != nil {
		return p.parked.Add(sliceRest), true
	}
	return time.Time{}, false
}

// drop ends the plan of the gang if it stands still, and its place in the line.
func (s *plans) drop(id gang.ID) {
	s.pace.Forget(id)
	if p := s.take(id); p != nil {
		p.stop()
	}
}
