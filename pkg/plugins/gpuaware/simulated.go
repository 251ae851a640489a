package gpuaware

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gpu/gpuview"
)

// simulations are the places that the cycle of a native pod group has found for its pods so far. They end with the
// cycle. The framework shows such pods on their nodes without counting the generation of these up, so that what is
// remembered of a node needs another number to go by. It is safe for concurrent use.
type simulations struct {
	// pods is the number of places: most clusters never have one.
	pods   atomic.Int64
	mu     sync.RWMutex
	byPod  map[types.UID]simulation
	byNode map[string]simulatedNode
	// changes counts all changes.
	changes uint64
}

// simulation is the place of one pod.
type simulation struct {
	node string
	// promised reports that devices are promised to the pod for as long.
	promised bool
}

type simulatedNode struct {
	pods int
	// change is that of the node that came last.
	change uint64
}

// begin records that a pod is to be on the node.
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

// promised records that devices were promised to it.
func (s *simulations) promised(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.byPod[uid]; ok {
		at.promised = true
		s.byPod[uid] = at
		s.changes++
		s.byNode[at.node] = simulatedNode{pods: s.byNode[at.node].pods, change: s.changes}
	}
}

// end takes the place back and reports whether devices were promised to the pod.
func (s *simulations) end(uid types.UID) (promised bool) {
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
	return at.promised
}

// stamp is a number that is another for each set of places on the node, 0 for none.
func (s *simulations) stamp(node string) uint64 {
	if s.pods.Load() == 0 {
		return 0
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byNode[node].change
}

// promiseSimulated promises devices for as long as the cycle of the pod's group. What the pod may hold already, because
// it is not known whether it was bound, stays.
func (l *ledger) promiseSimulated(uid types.UID, a gpuview.Assignment) {
	if _, held := l.of(uid); held {
		return
	}
	l.promise(uid, a)
	l.simulations.promised(uid)
}

// endSimulated takes it back.
func (l *ledger) endSimulated(uid types.UID) {
	if l.simulations.end(uid) {
		l.release(uid)
	}
}
