package informers

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// NodeEntry is what is kept of one node.
type NodeEntry[T any] struct {
	// Gone is set for a node that does not exist anymore: the entry is not kept.
	Gone  bool
	Value T
}

// ByNode keeps an entry for each node of the cluster. The key is the address of the API object, which informers replace
// and never change: a cycle would have to load the name of every node from memory. ByNode is safe for concurrent use,
// and finding an entry takes no lock.
type ByNode[T any] struct {
	nodes    cache.Store
	byObject sync.Map // *NodeEntry[T] by *v1.Node

	mu     sync.Mutex
	byName map[string]*v1.Node
}

// NewByNode keeps entries as long as the factory's informer knows their nodes.
func NewByNode[T any](factory informers.SharedInformerFactory) (*ByNode[T], error) {
	nodes := factory.Core().V1().Nodes().Informer()
	b := &ByNode[T]{nodes: nodes.GetStore(), byName: map[string]*v1.Node{}}
	_, err := Handle(factory, nodes, Events(nil, func(node *v1.Node) { b.forget(node.Name) }))
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	return b, nil
}

// Of returns the entry of a node, a zero one where the object is new.
func (b *ByNode[T]) Of(node *v1.Node) *NodeEntry[T] {
	if entry, ok := b.byObject.Load(node); ok {
		return entry.(*NodeEntry[T])
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// A cycle may still have a node that was deleted since. Its entry would never be dropped.
	if _, exists, err := b.nodes.GetByKey(node.Name); err != nil || !exists {
		return &NodeEntry[T]{Gone: true}
	}
	entry, known := b.byObject.LoadOrStore(node, &NodeEntry[T]{})
	if !known {
		b.byObject.Delete(b.byName[node.Name])
		b.byName[node.Name] = node
	}
	return entry.(*NodeEntry[T])
}

func (b *ByNode[T]) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byObject.Delete(b.byName[name])
	delete(b.byName, name)
}
