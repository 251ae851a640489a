package capacity

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// Snapshot is the index at one moment, for decisions that take longer than a lock should be held. It belongs to
// the caller, except for the API objects in it, which are shared and must not be changed.
type Snapshot struct {
	// Resources are the names of the positions in all vectors.
	Resources []v1.ResourceName
	Nodes     []Node
	// Shapes are those that were asked for, in that order.
	Shapes []Shape
}

// Node is a node with its pods. Amounts are in thousandths of a CPU and in units of everything else.
type Node struct {
	Name      string
	Object    *v1.Node
	Has, Used []int64
	Pods      []BoundPod
	// Admits says for each shape of the copy whether its pods may be on the node, whatever they request.
	Admits []bool
}

// BoundPod is a bound pod that has not ended.
type BoundPod struct {
	Object *v1.Pod
	UID    gang.UID
	// Of is the gang of the pod, zero without one.
	Of          gang.ID
	Priority    int32
	Terminating bool
	Started     time.Time
	Uses        []use
}

// Shape is what the pods of one shape ask for.
type Shape struct {
	key    ShapeKey
	Bounds []bound
}

// Snapshot returns the nodes in no particular order, with their pods, and what the live ones of the shapes ask for.
func (x *Index) Snapshot(keys []ShapeKey) *Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	c := &Snapshot{Resources: slices.Clone(x.resources.names), Nodes: make([]Node, 0, x.nodes.present)}
	var shapes []*shape
	for _, key := range keys {
		if s := x.shapes.byKey[key]; s != nil {
			shapes = append(shapes, s)
			c.Shapes = append(c.Shapes, Shape{key: key, Bounds: slices.Clone(s.bounds)})
		}
	}
	// A few large allocations instead of several for each node.
	width := len(x.resources.names)
	amounts := make([]int64, 0, 2*width*x.nodes.present)
	admits := make([]bool, 0, len(shapes)*x.nodes.present)
	pods := make([]BoundPod, 0, len(x.pods.byUID))
	uses := make([]use, 0, 4*len(x.pods.byUID))
	for _, n := range x.nodes.existing() {
		at := Node{Name: n.name, Object: n.node}
		at.Has, amounts = carve(amounts, n.has)
		at.Used, amounts = carve(amounts, n.used)
		first := len(admits)
		for _, s := range shapes {
			admits = append(admits, s.admits(n))
		}
		at.Admits = admits[first:len(admits):len(admits)]
		first = len(pods)
		for _, p := range n.pods {
			one := p.BoundPod
			one.Uses, uses = carve(uses, p.Uses)
			pods = append(pods, one)
		}
		at.Pods = pods[first:len(pods):len(pods)]
		c.Nodes = append(c.Nodes, at)
	}
	return c
}

// carve copies a slice to the end of a larger one and returns the copy, which cannot grow into what follows it, and the
// larger one.
func carve[T any](from, s []T) (part, whole []T) {
	from = append(from, s...)
	return from[len(from)-len(s) : len(from) : len(from)], from
}
