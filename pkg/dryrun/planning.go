package dryrun

import (
	"context"
	"iter"
	"sync"
	"time"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/retry"
)

// Planning is a plan that is being made, in the leader's scheduling cycles alone: between them it pauses.
type Planning struct {
	turn gang.Turn
	work Work
	next func() (struct{}, bool)
	Stop func()
	// Result and err are what came of it; took is how long the cycles worked on it.
	Result *Plan
	Err    error
	Took   time.Duration
	parked time.Time
}

// Begin begins a plan for the gang.
func (p *Planner) Begin(id gang.ID, turn gang.Turn, nodes []fwk.NodeInfo) *Planning {
	w := &Planning{turn: turn}
	w.next, w.Stop = iter.Pull(func(yield func(struct{}) bool) {
		w.work.yield = func() bool { return yield(struct{}{}) }
		w.Result, w.Err = p.arrange(&w.work, id, turn, nodes)
	})
	return w
}

// Slice works on the plan for the slice of one cycle, and reports whether it is done and how long that took.
func (p *Planning) Slice(ctx context.Context) (done bool, took time.Duration) {
	began := time.Now()
	p.work.begin(ctx)
	_, more := p.next()
	took = time.Since(began)
	p.Took += took
	return !more, took
}

// Serves reports whether the plan is of any use for what the gang asks for now. Members that have come since may be
// left out.
func (p *Planning) Serves(turn gang.Turn) bool {
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
	// parkedAtMost bounds the plans of one namespace that are paused at a time; each takes memory.
	parkedAtMost = 2
	// parkedFor is how long one may stand still before another takes its place.
	parkedFor = time.Minute
)

// Pending owns the plans that stand still until the next cycle of their leaders, and knows whose turn it is to plan.
type Pending struct {
	Pace retry.Pace

	mu     sync.Mutex
	parked map[gang.ID]*Planning
}

// Take hands over the plan of the gang, or nil.
func (s *Pending) Take(id gang.ID) *Planning {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parked[id]
	delete(s.parked, id)
	return p
}

// Park keeps the plan until it is taken or dropped, and reports whether there was room for it. If not it is dropped.
func (s *Pending) Park(id gang.ID, p *Planning, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := 0
	for other, o := range s.parked {
		switch {
		case other.Namespace != id.Namespace:
		case now.Sub(o.parked) > parkedFor:
			o.Stop()
			delete(s.parked, other)
		default:
			others++
		}
	}
	if others >= parkedAtMost {
		p.Stop()
		return false
	}
	if s.parked == nil {
		s.parked = map[gang.ID]*Planning{}
	}
	p.parked = now
	s.parked[id] = p
	return true
}

// GoesOn returns when the plan of the gang may go on, if it is paused.
func (s *Pending) GoesOn(id gang.ID) (at time.Time, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parked[id]; p != nil {
		return p.parked.Add(SliceRest), true
	}
	return time.Time{}, false
}

// Drop ends the plan of the gang if it is paused, and its place in the line.
func (s *Pending) Drop(id gang.ID) {
	s.Pace.Forget(id)
	if p := s.Take(id); p != nil {
		p.Stop()
	}
}
