package podgroup

import (
	"time"

	"golang.org/x/time/rate"

	"berth.dev/berth/pkg/grouptree"
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
	// messagesPerSecond is how many PodGroups and members have their messages changed each second, messagesAtOnce after a
	// quiet time: where many gangs wait, every pod that comes or goes changes the numbers in the messages of all.
	messagesPerSecond, messagesAtOnce = 100, 1000
)

// record is what the controller remembers of a gang. One sync at a time uses it.
type record struct {
	// wrote is when the status was last written.
	wrote time.Time
	// reworded is when messages that alone had changed were last written, slot when the next may be; zero until that is
	// asked.
	reworded, slot time.Time
	// startBy is until when a gang is given time that is expected to start.
	startBy time.Time
	// waits are the kinds of reasons for which the gang was reported to wait.
	waits map[string]bool
	// anomalies are the last messages about odd members, by reason.
	anomalies map[string]string
	// late is the last message about a deadline that cannot be met.
	late string
	// foreign is what was last written to the group of another scheduler, by object if that is a tree; foreignKind is
	// without the text.
	foreign     map[grouptree.Key]string
	foreignKind string
	// refused is the pause after the last PodGroup that was refused, 0 if none was; uncreatable is set if none can ever be
	// created.
	refused     time.Duration
	uncreatable bool
}

// reword returns 0 if messages of the gang that alone have changed may be written in the sync that began now, else the
// time after which to ask again.
func (r *record) reword(limiter *rate.Limiter, s *State, now time.Time) time.Duration {
	if r.reworded.Equal(now) {
		return 0
	}
	if pause := messagePause - now.Sub(r.reworded); pause > 0 {
		return pause
	}
	if r.slot.IsZero() {
		r.slot = now.Add(limiter.ReserveN(now, min(1+len(s.Held), messagesAtOnce)).DelayFrom(now))
	}
	if pause := r.slot.Sub(now); pause > 0 {
		return pause
	}
	r.reworded, r.slot = now, time.Time{}
	return 0
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

// sooner is the shorter of two pauses; 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
