package waiting

import (
	"sync"
	"time"
)

const (
	// paceShort is the length of a plan that delays no other, by the mean of the last few of a namespace.
	paceShort = 10 * time.Millisecond
	// pacePatience is how long others wait for the plan of the gang whose turn it is.
	pacePatience = time.Second
	// paceMemory is for how long the plans of a namespace count after the last of them.
	paceMemory = 10 * time.Second
)

// Pace spreads plans that take long. Each plan is made in a scheduling cycle, and while a hundred new gangs plan, no
// other pod is scheduled. So of all gangs in namespaces whose plans have lately taken long one plans at a time, and the
// next one after a rest of half the time that the last plan took. Gangs of other namespaces do not wait for that.
//
// The zero Pace is ready for use. It is safe for concurrent use.
type Pace struct {
	mu         sync.Mutex
	namespaces map[string]planning
	// nextAt is when the next gang of such namespaces may plan.
	nextAt time.Time
}

// planning is what is known of a namespace.
type planning struct {
	// typical is a mean of the time that the last plans took; the last one ended at that time.
	typical time.Duration
	at      time.Time
}

// Ran records that a gang of the namespace has planned for that time.
func (p *Pace) Ran(namespace string, took time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.namespaces == nil {
		p.namespaces = map[string]planning{}
	}
	known := p.namespaces[namespace]
	typical := (3*known.typical + took) / 4
	if p.namespaces[namespace] = (planning{typical, now}); typical >= paceShort {
		p.nextAt = now.Add(took / 2)
	}
	for name, known := range p.namespaces {
		if now.Sub(known.at) >= paceMemory {
			delete(p.namespaces, name)
		}
	}
}

// Begin gives a gang of the namespace the turn to plan, if it may plan now. If not, it returns after what time to ask
// again.
func (p *Pace) Begin(namespace string, now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.namespaces[namespace]
	if known.typical < paceShort || now.Sub(known.at) >= paceMemory {
		return 0
	}
	if wait = max(p.nextAt.Sub(now), 0); wait == 0 {
		p.nextAt = now.Add(pacePatience)
	}
	return wait
}
