package gpuaware

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/kubeview"
)

// ledger holds the devices that this process has promised to pods, from Reserve until the pod is gone. What was
// promised before the process started stands in the pods' annotations; the ledger covers the time until an annotation
// has come back through the API, and pods that are promised a device they were never bound to. It is safe for
// concurrent use.
type ledger struct {
	mu     sync.RWMutex
	byPod  map[types.UID]kubeview.Assignment
	byNode map[string]map[types.UID]struct{}
}

func newLedger() *ledger {
	return &ledger{byPod: map[types.UID]kubeview.Assignment{}, byNode: map[string]map[types.UID]struct{}{}}
}

// promise records what a pod was given, in place of what it was given before.
func (l *ledger) promise(uid types.UID, a kubeview.Assignment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(uid)
	l.byPod[uid] = a
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
	a, ok := l.byPod[uid]
	if !ok {
		return
	}
	delete(l.byPod, uid)
	delete(l.byNode[a.Node], uid)
	if len(l.byNode[a.Node]) == 0 {
		delete(l.byNode, a.Node)
	}
}

// of returns what a pod was promised.
func (l *ledger) of(uid types.UID) (kubeview.Assignment, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	a, ok := l.byPod[uid]
	return a, ok
}

// on returns the pods that hold a promise on a node, in a fixed order.
func (l *ledger) on(node string) []types.UID {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.byNode[node]))
}
