package gpuaware

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gpu/gpuview"
)

// ledger records the devices of pods: those that this process has assigned, from Reserve on, and those that bound pods
// had been granted when it first saw them. A pod keeps its devices until it is gone, whatever becomes of its
// annotations. It is safe for concurrent use.
type ledger struct {
	mu     sync.RWMutex
	byPod  map[types.UID]entry
	byNode map[string]map[types.UID]struct{}

	simulations simulations
}

// entry is the devices of one pod.
type entry struct {
	gpuview.Assignment
	// reported are the events that were recorded of the pod.
	reported []string
}

func newLedger() *ledger {
	return &ledger{byPod: map[types.UID]entry{}, byNode: map[string]map[types.UID]struct{}{},
		simulations: simulations{byPod: map[types.UID]simulation{}, byNode: map[string]uint64{}}}
}

// assign records the devices of a pod in place of earlier ones.
func (l *ledger) assign(uid types.UID, a gpuview.Assignment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(uid, a)
}

// adopt records the devices that a bound pod was granted, unless the pod has some already.
func (l *ledger) adopt(uid types.UID, a gpuview.Assignment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.byPod[uid]; !known {
		l.add(uid, a)
	}
}

func (l *ledger) add(uid types.UID, a gpuview.Assignment) {
	l.drop(uid)
	l.byPod[uid] = entry{Assignment: a}
	pods := l.byNode[a.Node]
	if pods == nil {
		pods = map[types.UID]struct{}{}
		l.byNode[a.Node] = pods
	}
	pods[uid] = struct{}{}
}

// release forgets a pod. It is idempotent.
func (l *ledger) release(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(uid)
}

func (l *ledger) drop(uid types.UID) {
	e, ok := l.byPod[uid]
	if !ok {
		return
	}
	delete(l.byPod, uid)
	delete(l.byNode[e.Node], uid)
	if len(l.byNode[e.Node]) == 0 {
		delete(l.byNode, e.Node)
	}
}

// of returns the devices of a pod.
func (l *ledger) of(uid types.UID) (gpuview.Assignment, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e, ok := l.byPod[uid]
	return e.Assignment, ok
}

// on returns the pods with devices on a node, in a fixed order.
func (l *ledger) on(node string) []types.UID {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.byNode[node]))
}

// first reports whether the pod has devices and the event was not recorded of it before.
func (l *ledger) first(uid types.UID, event string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byPod[uid]
	if !ok || slices.Contains(e.reported, event) {
		return false
	}
	e.reported = append(e.reported, event)
	l.byPod[uid] = e
	return true
}
