package coscheduling

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// clusterCopy is the account at one moment, for decisions that take longer than a lock should be held. It belongs to
// the caller, except for the API objects in it, which are shared and must not be changed.
type clusterCopy struct {
	// resources are the names of the positions in all vectors.
	resources []v1.ResourceName
	nodes     []nodeCopy
	// shapes are those that were asked for, in that order.
	shapes []shapeCopy
}

// nodeCopy is a node with its pods. Amounts are in thousandths of a CPU and in units of everything else.
type nodeCopy struct {
	name      string
	node      *v1.Node
	has, used []int64
	pods      []podCopy
	// admits says for each shape of the copy whether its pods may be on the node, whatever they request.
	admits []bool
}

// podCopy is a bound pod that has not ended.
type podCopy struct {
	pod *v1.Pod
	uid gang.UID
	// of is the gang of the pod, zero without one.
	of          gang.ID
	priority    int32
	terminating bool
	started     time.Time
	uses        []use
}

// shapeCopy is what the pods of one shape ask for.
type shapeCopy struct {
	key    shapeKey
	bounds []bound
}

// cluster returns the nodes in no particular order, with their pods, and what the live ones of the shapes ask for.
func (h *headroom) cluster(keys []shapeKey) *clusterCopy {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	c := &clusterCopy{resources: slices.Clone(h.resources), nodes: make([]nodeCopy, 0, h.present)}
	var shapes []*shape
	for _, key := range keys {
		if s := h.shapes[key]; s != nil {
			shapes = append(shapes, s)
			c.shapes = append(c.shapes, shapeCopy{key: key, bounds: slices.Clone(s.bounds)})
		}
	}
	// A few large allocations instead of several for each node.
	width := len(h.resources)
	amounts := make([]int64, 0, 2*width*h.present)
	admits := make([]bool, 0, len(shapes)*h.present)
	pods := make([]podCopy, 0, len(h.pods))
	uses := make([]use, 0, 4*len(h.pods))
	for i, n := range h.nodes {
		if n == nil || n.node == nil {
			continue
		}
		at := nodeCopy{name: n.name, node: n.node}
		at.has, amounts = carve(amounts, n.has)
		at.used, amounts = carve(amounts, n.used)
		first := len(admits)
		for _, s := range shapes {
			admits = append(admits, s.rule.verdicts[i] == admitted)
		}
		at.admits = admits[first:len(admits):len(admits)]
		first = len(pods)
		for _, p := range n.pods {
			one := p.podCopy
			one.uses, uses = carve(uses, p.uses)
			pods = append(pods, one)
		}
		at.pods = pods[first:len(pods):len(pods)]
		c.nodes = append(c.nodes, at)
	}
	return c
}

// carve copies a slice to the end of a larger one and returns the copy, which cannot grow into what follows it, and the
// larger one.
func carve[T any](from, s []T) (part, whole []T) {
	from = append(from, s...)
	return from[len(from)-len(s) : len(from) : len(from)], from
}
