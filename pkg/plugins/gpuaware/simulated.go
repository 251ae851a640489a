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
	// pods is the number of simulated pods: most clusters never have one.
	pods   atomic.Int64
	mu     sync.RWMutex
	byPod  map[types.UID]simulation
	byNode map[string]simulatedNode
	// changes counts all changes.
	changes uint64
}

// simulation is where one pod is.
type simulation struct {
	node string
	// assigned reports that devices are assigned to the pod for the cycle.
	assigned bool
}

type simulatedNode struct {
	pods int
	// change is the number of the last change on the node.
	change uint64
}

// begin records that a pod is on the node for the rest of the cycle.
func (s *simulations) begin(uid types.UID, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPod == nil {
		s.byPod, s.byNode = map[types.UID]simulation{}, map[string]simulatedNode{}
	}
	s.drop(uid)
	s.byPod[uid] = simulation{node: node}
	s.pods.Add(1)
	s.changes++
	s.byNode[node] = simulatedNode{pods: s.byNode[node].pods + 1, change: s.changes}
}

// assigned records that devices were assigned to the pod.
func (s *simulations) assigned(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.byPod[uid]; ok {
		at.assigned = true
		s.byPod[uid] = at
		s.changes++
		s.byNode[at.node] = simulatedNode{pods: s.byNode[at.node].pods, change: s.changes}
	}
}

// end takes that back and reports whether devices were assigned to the pod.
func (s *simulations) end(uid types.UID) (assigned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(uid)
}

func (s *simulations) drop(uid types.UID) bool {
	at, ok := s.byPod[uid]
	if !ok {
		return false
	}
	delete(s.byPod, uid)
	s.pods.Add(-1)
	s.changes++
	if left := s.byNode[at.node].pods - 1; left > 0 {
		s.byNode[at.node] = simulatedNode{pods: left, change: s.changes}
	} else {
		delete(s.byNode, at.node)
	}
	return at.assigned
}

// stamp is a number for the set of simulated pods on the node, 0 for none.
func (s *simulations) stamp(node string) uint64 {
	if s.pods.Load() == 0 {
		return 0
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byNode[node].change
}

// assignSimulated assigns devices until the cycle of the pod's group ends. Devices that the pod may have already,
// because it is not known whether it was bound, stay.
func (l *ledger) assignSimulated(uid types.UID, a gpuview.Assignment) {
	if _, known := l.of(uid); known {
		return
	}
	l.assign(uid, a)
	l.simulations.assigned(uid)
}

// endSimulated releases these devices.
func (l *ledger) endSimulated(uid types.UID) {
	if l.simulations.end(uid) {
		l.release(uid)
	}
}
