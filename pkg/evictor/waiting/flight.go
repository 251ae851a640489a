package waiting

import "sync"

// Flight holds those for which a gang may have to make room while its members are being bound. It is evicted as a
// whole, or spares some members, which it can when all are bound; no event of the scheduler's queue or of the account
// says that they are.
type Flight struct {
	mu       sync.Mutex
	requests map[string]For
}

// mostAfterFlight bounds those that wait; some may be gone. Those beyond are tried again as all are, after some
// minutes.
const mostAfterFlight = 1000

// Add keeps the request until the members of the next gang are bound.
func (a *Flight) Add(r For) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests == nil {
		a.requests = map[string]For{}
	}
	if len(a.requests) < mostAfterFlight {
		a.requests[r.Name] = r
	}
}

// Take returns the requests and forgets them.
func (a *Flight) Take() map[string]For {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := a.requests
	a.requests = nil
	return requests
}
