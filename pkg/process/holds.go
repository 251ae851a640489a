package process

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	clientinformers "k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/process/informers"
)

// Planned is a pod for which capacity is kept on a node.
type Planned struct {
	Pod *v1.Pod
	// Key is unique, although one pod may stand for several that are alike.
	Key  string
	Node string
}

// Keeper keeps capacity for pods that wait.
type Keeper interface {
	// Before returns the pods whose holds the pod must not use. Nodes are those of the cycle.
	Before(pod *v1.Pod, nodes fwk.NodeInfoLister) []Planned
	// Wait has the pod tried again when one of these holds ends.
	Wait(pod *v1.Pod)
}

// Holds tells plugins that count something for the whole cluster, such as licenses and addresses, for which pods
// capacity is kept. It is safe for concurrent use.
type Holds struct {
	mu     sync.RWMutex
	keeper Keeper
}

// HoldsOf returns the holds of the scheduler to which the factory belongs.
func HoldsOf(factory clientinformers.SharedInformerFactory) (*Holds, error) {
	return informers.Shared(factory, func() (*Holds, error) { return &Holds{}, nil })
}

// KeptBy sets who keeps capacity.
func (h *Holds) KeptBy(k Keeper) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keeper = k
}

// Before calls count for the pods whose holds the pod must not use. If count returns true for one of them, the pod is
// tried again when such a hold ends.
func (h *Holds) Before(pod *v1.Pod, nodes fwk.NodeInfoLister, count func(Planned) bool) {
	h.mu.RLock()
	keeper := h.keeper
	h.mu.RUnlock()
	if keeper == nil {
		return
	}
	counted := false
	for _, planned := range keeper.Before(pod, nodes) {
		counted = count(planned) || counted
	}
	if counted {
		keeper.Wait(pod)
	}
}
