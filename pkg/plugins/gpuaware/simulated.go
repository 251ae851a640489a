package gpuaware

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gpu/gpuview"
)

// simulations are the nodes that the cycle of a native pod group has found for its pods so far. They end with the
// cycle. The framework adds such pods to NodeInfos without changing their generation, so that cached views need another
// number to compare. It is safe for concurrent use.
type simulations struct {
	// any is set while there are such pods: most clusters never have one.
	any    atomic.Bool
	mu     sync.RWMutex
	byPod  map[types.UID]simulation
	byNode map[string]uint64
	// changes counts all changes; byNode has the number of the last one on a node.
	changes uint64
}

// simulation is where one pod is.
type simulation struct {
	node string
	// assigned reports that devices are assigned to the pod for the cycle.
	assigned bool
}

// set records that a pod is on the node for the rest of the cycle, and whether devices are assigned to it.
func (s *simulations) set(uid types.UID, node string, assigned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.byPod[uid]; ok {
		s.changed(before.node)
	}
	s.byPod[uid] = simulation{node, assigned}
	s.changed(node)
}

// end takes that back and reports whether devices were assigned to the pod.
func (s *simulations) end(uid types.UID) (assigned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.byPod[uid]
	if !ok {
		return false
	}
	delete(s.byPod, uid)
	s.changed(at.node)
	return at.assigned
}

func (s *simulations) changed(node string) {
	s.changes++
	s.byNode[node] = s.changes
	if len(s.byPod) == 0 {
		clear(s.byNode)
	}
	s.any.Store(len(s.byPod) > 0)
}

// stamp is a number for the simulated pods on the node, 0 for none.
func (s *simulations) stamp(node string) uint64 {
	if !s.any.Load() {
		return 0
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byNode[node]
}

// assignSimulated assigns devices until the cycle of the pod's group ends. Devices that the pod may have already,
// because it is not known whether it was bound, stay.
func (l *ledger) assignSimulated(uid types.UID, a gpuview.Assignment) {
	if _, known := l.of(uid); known {
		return
	}
	l.assign(uid, a)
	l.simulations.set(uid, a.Node, true)
}

// endSimulated releases these devices.
func (l *ledger) endSimulated(uid types.UID) {
	if l.simulations.end(uid) {
		l.release(uid)
	}
}
