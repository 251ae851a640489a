package evictor

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// afterFlight holds those for which a gang may have to make room while its members are being bound. It is evicted as a
// whole, or spares some members, which it can when all are bound; no event of the scheduler's queue or of the account
// says that they are.
type afterFlight struct {
	mu       sync.Mutex
	requests map[string]*request
}

// mostAfterFlight bounds those that wait; some may be gone. Those beyond are tried again as all are, after some
// minutes.
const mostAfterFlight = 1000

// landPause is how long after their gang's last binding those are tried again that may evict it.
const landPause = 100 * time.Millisecond

// add keeps the request until the members of the next gang are bound.
func (a *afterFlight) add(r *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests == nil {
		a.requests = map[string]*request{}
	}
	if len(a.requests) < mostAfterFlight {
		a.requests[r.name] = r
	}
}

// take returns the requests and forgets them.
func (a *afterFlight) take() map[string]*request {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := a.requests
	a.requests = nil
	return requests
}

// lookForFlight notes whether gangs of lower priority are on their way, and has the request tried again when they have
// landed. Those that it needs may land between the search for pods to evict and the cycle that reads its result.
func (e *Evictor) lookForFlight(r *request) {
	if r.inFlight = e.Ledger.Evictions.Beginning(r.priority); r.inFlight {
		// What all nodes say of it is large, and out of date by then.
		e.afterFlight.add(&request{name: r.name, id: r.id, only: r.only})
	}
}

// Landed has those tried again that may evict a gang whose members have been bound.
func (e *Evictor) Landed() {
	requests := e.afterFlight.take()
	if len(requests) == 0 {
		return
	}
	// The account from which victims are chosen may hear of the last member after the ledger.
	time.AfterFunc(landPause, func() {
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			e.again(requests[name])
		}
	})
}
