package informers

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// NoIndex is the index of a node that is gone.
const NoIndex = -1

// NodeEntry is what is kept of one node.
type NodeEntry[T any] struct {
	// Index is a small number that is the node's own while it exists, for tables of all nodes; NoIndex for one that is
	// gone.
	Index int
	Value T
}

// ByNode keeps an entry for each node of the cluster. It is found by the address of the API object, which a cycle has
// at hand and an informer never changes, only replaces: the name is memory of its own, which a cycle would have to
// fetch for every node. ByNode is safe for concurrent use, and finding an entry takes no lock.
type ByNode[T any] struct {
	nodes    cache.Store
	byObject sync.Map // *NodeEntry[T] by *v1.Node

	mu     sync.Mutex
	byName map[string]keptNode[T]
	// free are the indices of nodes that went, indices is how many were ever given out.
	free    []int
	indices int
}

// keptNode is an entry and the object by which it is found.
type keptNode[T any] struct {
	node  *v1.Node
	entry *NodeEntry[T]
}

// NewByNode keeps entries as long as the factory's informer knows their nodes.
func NewByNode[T any](factory informers.SharedInformerFactory) (*ByNode[T], error) {
	nodes := factory.Core().V1().Nodes().Informer()
	b := &ByNode[T]{nodes: nodes.GetStore(), byName: map[string]keptNode[T]{}}
	_, err := Handle(factory, nodes, Events[*v1.Node]{Gone: func(node *v1.Node) { b.forget(node.Name) }})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	return b, nil
}

// Of returns the entry of a node, a zero one where the object is new. An object that replaces another keeps its index.
func (b *ByNode[T]) Of(node *v1.Node) *NodeEntry[T] {
	if entry, ok := b.byObject.Load(node); ok {
		return entry.(*NodeEntry[T])
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// A cycle may still hold a node that went since. What was kept of it then would never be dropped.
	if _, exists, err := b.nodes.GetByKey(node.Name); err != nil || !exists {
		return &NodeEntry[T]{Index: NoIndex}
	}
	known, ok := b.byName[node.Name]
	if ok && known.node == node {
		return known.entry
	}
	entry := &NodeEntry[T]{}
	switch n := len(b.free); {
	case ok:
		entry.Index = known.entry.Index
		b.byObject.Delete(known.node)
	case n > 0:
		entry.Index, b.free = b.free[n-1], b.free[:n-1]
	default:
		entry.Index = b.indices
		b.indices++
	}
	b.byName[node.Name] = keptNode[T]{node, entry}
	b.byObject.Store(node, entry)
	return entry
}

// Indices is the number above all indices.
func (b *ByNode[T]) Indices() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.indices
}

func (b *ByNode[T]) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.byName[name]; ok {
		b.byObject.Delete(known.node)
		delete(b.byName, name)
		b.free = append(b.free, known.entry.Index)
	}
}
