package evictor

import (
	"sync"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// beneficiary is the gang or the pod for which others are evicted. It is kept without its request: what all nodes say
// of that is large, and soon out of date.
type beneficiary struct {
	// name says for whom, in messages and as a key; id is the zero ID for a single pod.
	name string
	id   gang.ID
	only *v1.Pod
}

// flight holds those for which a gang may have to make room while its members are being bound. It is evicted as a
// whole, or spares some members, which it can when all are bound; no event of the scheduler's queue or of the account
// says that they are.
type flight struct {
	mu       sync.Mutex
	requests map[string]beneficiary
}

// mostAfterFlight bounds those that wait; some may be gone. Those beyond are tried again as all are, after some
// minutes.
const mostAfterFlight = 1000

// add keeps the request until the members of the next gang are bound.
func (a *flight) add(r beneficiary) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests == nil {
		a.requests = map[string]beneficiary{}
	}
	if len(a.requests) < mostAfterFlight {
		a.requests[r.name] = r
	}
}

// take returns the requests and forgets them.
func (a *flight) take() map[string]beneficiary {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := a.requests
	a.requests = nil
	return requests
}
