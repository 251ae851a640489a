package coscheduling

import (
	"sync"

	"berth.dev/berth/pkg/gang"
)

// afterFlight holds pods for which a gang of which members are being bound may have to make room. It is evicted as a whole, or spares some
// members, which it can when all are bound; no event of the scheduler's queue says that they are.
type afterFlight struct {
	mu   sync.Mutex
	pods map[gang.UID]gang.Ref
}

// mostAfterFlight bounds the pods that wait, of which some may be gone. Those beyond are tried again as all pods are, after some
// minutes.
const mostAfterFlight = 1000

// add keeps the pod until the members of the next gang are bound.
func (a *afterFlight) add(pod gang.Ref) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pods == nil {
		a.pods = map[gang.UID]gang.Ref{}
	}
	if len(a.pods) < mostAfterFlight {
		a.pods[pod.UID] = pod
	}
}

// take returns the pods and forgets them.
func (a *afterFlight) take() []gang.Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	refs := make([]gang.Ref, 0, len(a.pods))
	for _, ref := range a.pods {
		refs = append(refs, ref)
	}
	a.pods = nil
	return refs
}
