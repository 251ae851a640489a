package coscheduling

import (
	"sync"

	"berth.dev/berth/pkg/gang"
)

// afterStart holds pods for which a gang that is being bound may have to make room. A gang is evicted as a whole, which it can be
// when all of it is bound; no event of the scheduler's queue says that it is.
type afterStart struct {
	mu   sync.Mutex
	pods map[gang.UID]gang.Ref
}

// mostAfterStart bounds the pods that wait, of which some may be gone. Those beyond are tried again as all pods are, after some
// minutes.
const mostAfterStart = 1000

// add keeps the pod until the next gang starts.
func (a *afterStart) add(pod gang.Ref) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pods == nil {
		a.pods = map[gang.UID]gang.Ref{}
	}
	if len(a.pods) < mostAfterStart {
		a.pods[pod.UID] = pod
	}
}

// take returns the pods and forgets them, if a gang has started.
func (a *afterStart) take(started bool) []gang.Ref {
	if !started {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	refs := make([]gang.Ref, 0, len(a.pods))
	for _, ref := range a.pods {
		refs = append(refs, ref)
	}
	a.pods = nil
	return refs
}
