package replay

import (
	"time"

	"berth.dev/berth/pkg/replay/replayed"
)

// mostStays is how many stays on nodes are kept, the first of them.
const mostStays = 50_000

// stays collect which job had which node from when to when.
type stays struct {
	start time.Time
	list  []*replayed.Stay
}

// begin notes that a pod has its node.
func (s *stays) begin(p *podState, now time.Time) {
	if len(s.list) == mostStays {
		return
	}
	p.stay = &replayed.Stay{Job: p.key.String(), Node: p.node, From: now.Sub(s.start).Seconds()}
	if p.job != nil {
		p.stay.Job, p.stay.Gang, p.stay.Arrived = p.job.Name, p.job.Gang, p.job.arrived.Sub(s.start).Seconds()
	}
	s.list = append(s.list, p.stay)
}

// end notes that it no longer has it.
func (s *stays) end(p *podState, now time.Time) {
	if p.stay != nil {
		p.stay.To = now.Sub(s.start).Seconds()
		p.stay = nil
	}
}

// result returns the stays; those that have not ended end with the replay.
func (s *stays) result(now time.Time) []replayed.Stay {
	list := make([]replayed.Stay, len(s.list))
	for i, stay := range s.list {
		list[i] = *stay
		if list[i].To == 0 {
			list[i].To = now.Sub(s.start).Seconds()
		}
	}
	return list
}
