package podgroup

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"berth.dev/berth/pkg/gang"
)

const (
	// settleDelay is the time from a change to its write: further changes come meanwhile, and one write says what
	// several would.
	settleDelay = 1100 * time.Millisecond
	// generatedDelay lets the handlers of one event finish.
	generatedDelay = 100 * time.Millisecond
	// startDelay is the time that a gang is given that is expected to start in a moment.
	startDelay = 3 * time.Second
	// writePause is the least time between two writes of one PodGroup.
	writePause = 1100 * time.Millisecond
	// messagePause is the least time between two writes that change only why a gang or its members are pending: the
	// numbers in it change with every pod that comes or goes.
	messagePause = 3 * time.Second
	// These are how many PodGroups and members have their messages changed each second, and at once after a quiet time:
	// where many gangs wait, every pod that comes or goes changes the numbers in the messages of all. The PodGroups of a
	// thousand gangs follow one change at once.
	groupMessages, groupMessagesAtOnce   = 20, 1000
	memberMessages, memberMessagesAtOnce = 100, 1000
)

// messageLimits limit the writes that change only messages.
type messageLimits struct{ groups, members *rate.Limiter }

func newMessageLimits() messageLimits {
	return messageLimits{rate.NewLimiter(groupMessages, groupMessagesAtOnce),
		rate.NewLimiter(memberMessages, memberMessagesAtOnce)}
}

// pace spaces out the writes that change only the messages of a PodGroup, or those of its members.
type pace struct {
	last time.Time
	// slot is when the limiter lets the next ones be written; zero until it is asked.
	slot time.Time
}

// take returns 0 if n messages may be written now, else the time after which to ask again.
func (p *pace) take(limiter *rate.Limiter, n int, now time.Time) time.Duration {
	if pause := messagePause - now.Sub(p.last); pause > 0 {
		return pause
	}
	if p.slot.IsZero() {
		p.slot = now.Add(limiter.ReserveN(now, n).DelayFrom(now))
	}
	if pause := p.slot.Sub(now); pause > 0 {
		return pause
	}
	p.last, p.slot = now, time.Time{}
	return 0
}

// record is what the controller remembers of a gang. One sync at a time uses it.
type record struct {
	// wrote is when the status was last written.
	wrote          time.Time
	group, members pace
	// startBy is until when a gang is given time that is expected to start.
	startBy time.Time
	// waits are the kinds of reasons for which the gang was reported to wait.
	waits map[string]bool
	// anomalies are the last messages about odd members, by reason.
	anomalies map[string]string
	// late is the last message about a deadline that cannot be met.
	late string
	// foreign is what was last written to the group of another scheduler, foreignKind without its text.
	foreign, foreignKind string
	foreignPace          pace
	// uncreatable is set if no PodGroup can ever be created for the gang.
	uncreatable bool
}

// pause returns how long the sync of the gang has to wait, 0 if it begins. A gang is underway that is expected to start
// in a moment.
func (r *record) pause(underway bool, now time.Time) time.Duration {
	switch {
	case !underway:
		r.startBy = time.Time{}
	case r.startBy.IsZero():
		r.startBy = now.Add(startDelay - settleDelay)
	}
	return max(0, writePause-now.Sub(r.wrote), r.startBy.Sub(now))
}

// records hold the records of the gangs that exist.
type records struct {
	mu     sync.Mutex
	byGang map[gang.ID]*record
}

func (r *records) of(id gang.ID) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byGang == nil {
		r.byGang = map[gang.ID]*record{}
	}
	if r.byGang[id] == nil {
		r.byGang[id] = &record{}
	}
	return r.byGang[id]
}

func (r *records) forget(id gang.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byGang, id)
}

// sooner is the shorter of two pauses; 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
