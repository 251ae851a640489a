// Package clusterwide is what plugins that plan for several pods at a time, and plugins that count something for the
// whole cluster, such as licenses and addresses, know of each other.
//
// What lies on a node is seen in its NodeInfo. What does not is asked for here: which pods are to come before another
// one, and what can be had by evicting pods. The package keeps nothing of its own but who answers.
package clusterwide

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	clientinformers "k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/informers"
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

// Counter counts what pods hold.
type Counter interface {
	// Count says what there is of that for which the pods ask; nil if they ask for nothing.
	Count(asking []*v1.Pod) *Count
}

// NodeCounter is a plugin whose Filter counts what pods take of a node beyond its resources, such as shares of GPUs, by
// the pods that its NodeInfo shows.
type NodeCounter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	// Takes returns how much of that the pod takes or asks for, to compare pods by; 0 for nothing.
	Takes(pod *v1.Pod) int64
}

// Count is what a Counter has. A pool is what is counted together.
type Count struct {
	// Free is how much of each pool is not held. It may be negative.
	Free []int64
	// Asks is how much of each pool each of the pods asks for.
	Asks [][]int64
	// Covers reports whether pods on the node hold what they ask for of a pool.
	Covers func(pool int, node string) bool
	// Uses returns how much of each pool a pod holds on a node, or would hold; nil for nothing.
	Uses func(pod *v1.Pod, node string) []int64
}

// Book is where plugins of one process find each other. It is safe for concurrent use.
type Book struct {
	mu     sync.RWMutex
	keeper Keeper
	// counters are by the names of their plugins.
	counters map[string]Counter
}

// Of returns the book of the scheduler to which the factory belongs.
func Of(factory clientinformers.SharedInformerFactory) (*Book, error) {
	return informers.Shared(factory, func() (*Book, error) { return &Book{}, nil })
}

// KeptBy says who keeps capacity.
func (b *Book) KeptBy(k Keeper) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keeper = k
}

// CountedBy adds a plugin that counts.
func (b *Book) CountedBy(plugin string, c Counter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counters == nil {
		b.counters = map[string]Counter{}
	}
	b.counters[plugin] = c
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

// Counts returns what there is of that for which the pods ask, by those of the plugins that their profile runs.
func (b *Book) Counts(asking []*v1.Pod, runs func(plugin string) bool) []*Count {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var counts []*Count
	for _, plugin := range slices.Sorted(maps.Keys(b.counters)) {
		if !runs(plugin) {
			continue
		}
		if count := b.counters[plugin].Count(asking); count != nil {
			counts = append(counts, count)
		}
	}
	return counts
}
