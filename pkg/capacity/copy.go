package capacity

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// Snapshot is the index at one moment, for decisions that take longer than a lock should be held. It belongs to
// the caller, except for the API objects and the amounts in it, which are shared and must not be changed.
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
	Bounds []bound
}

// Snapshot returns the nodes in no particular order, with their pods, and what the live ones of the shapes ask for.
func (x *Index) Snapshot(keys []ShapeKey) *Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := &Snapshot{Resources: slices.Clone(x.resources.names), Nodes: make([]Node, 0, x.nodes.present)}
	var shapes []*shape
	for _, key := range keys {
		if s := x.shapes.byKey[key]; s != nil {
			shapes = append(shapes, s)
			c.Shapes = append(c.Shapes, Shape{s.bounds})
		}
	}
	// Amounts that are replaced as a whole when they change are shared.
	for _, n := range x.nodes.existing() {
		at := Node{Name: n.name, Object: n.node, Has: n.has, Used: slices.Clone(n.used),
			Pods: make([]BoundPod, len(n.pods)), Admits: make([]bool, len(shapes))}
		for i, p := range n.pods {
			at.Pods[i] = p.BoundPod
		}
		for i, s := range shapes {
			at.Admits[i] = s.admits(n)
		}
		c.Nodes = append(c.Nodes, at)
	}
	return c
}
