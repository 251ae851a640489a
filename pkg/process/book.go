package process

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	clientinformers "k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/process/informers"
)

// Planned is a pod that is to come to a node.
type Planned struct {
	Pod *v1.Pod
	// Key is another one for each place, although one pod may stand for several that are alike.
	Key  string
	Node string
}

// Keeper keeps capacity for pods that wait.
type Keeper interface {
	// Before returns the pods for which capacity is kept against the pod. Nodes are those that the cycle sees.
	Before(pod *v1.Pod, nodes fwk.NodeInfoLister) []Planned
	// Wait has the pod tried again when one of them needs nothing any more.
	Wait(pod *v1.Pod)
}

// NodeCounter is a plugin whose Filter counts what pods take of a node beyond its resources, such as shares of GPUs, by
// the pods that its NodeInfo shows.
type NodeCounter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	CountsOnNodes()
	// Unfit returns what keeps the pod off a node whatever runs there, beyond resources; nil if that is nothing for any.
	Unfit(*v1.Pod) func(*v1.Node) obstacle.NodeCause
}

// NodeRuler is a plugin whose Filter refuses nodes for what they are, whatever runs there.
type NodeRuler interface {
	fwk.FilterPlugin
	// NodeRule returns the rule for a pod, nil for one that may be on any node.
	NodeRule(*v1.Pod) NodeRule
}

// NodeRule says which nodes a plugin refuses for what they are.
type NodeRule interface {
	// Key is the same for rules that say the same.
	Key() string
	// Against is what is said against a node, empty for nothing.
	Against(*v1.Node) string
}

// Book is where plugins of one process find each other. It is safe for concurrent use.
type Book struct {
	mu     sync.RWMutex
	keeper Keeper
}

// BookOf returns the book of the scheduler to which the factory belongs.
func BookOf(factory clientinformers.SharedInformerFactory) (*Book, error) {
	return informers.Shared(factory, func() (*Book, error) { return &Book{}, nil })
}

// KeptBy says who keeps capacity.
func (b *Book) KeptBy(k Keeper) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keeper = k
}

// Before calls count for the pods for which capacity is kept against the pod. If it counts one of them, the pod is
// tried again when that needs nothing any more.
func (b *Book) Before(pod *v1.Pod, nodes fwk.NodeInfoLister, count func(Planned) bool) {
	b.mu.RLock()
	keeper := b.keeper
	b.mu.RUnlock()
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
