package gang

import (
	"cmp"
	"container/heap"
)

// reserveQueue holds the room of nodes for members of a shape, those first that are to be kept first. It is a heap, as
// few of them are ever looked at.
type reserveQueue []reserveEntry

// reserveEntry is a number of places on a node for which as many pods have to end.
type reserveEntry struct {
	// node is the position among the nodes of the domain, which are in the order of their names.
	node         int32
	places, pods int32
	// free is that of the node's room, kept is set if something of the node is kept already, stuck if pods have to end
	// on a node that is stuck.
	free        int32
	kept, stuck bool
}

// newReserveQueue returns what the nodes with these positions have for members of the shape: what is free, and what is
// not yet.
func newReserveQueue(nodes []ReserveNode, domain []int, shape int) *reserveQueue {
	q := make(reserveQueue, 0, 2*len(domain))
	for at, n := range domain {
		room := &nodes[n].Rooms[shape]
		e := reserveEntry{node: int32(at), free: int32(room.Free), kept: nodes[n].Kept}
		now := min(room.Now, room.Empty)
		if e.places = int32(now); now > 0 {
			q = append(q, e)
		}
		if e.places, e.pods, e.stuck = int32(room.Empty-now), int32(max(room.Pods, 1)), nodes[n].Stuck; e.places > 0 {
			q = append(q, e)
		}
	}
	heap.Init(&q)
	return &q
}

// Len implements heap.Interface.
func (q reserveQueue) Len() int { return len(q) }

// Swap implements heap.Interface.
func (q reserveQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Less implements heap.Interface.
func (q reserveQueue) Less(i, j int) bool {
	a, b := &q[i], &q[j]
	switch {
	case a.stuck != b.stuck:
		return b.stuck
	case a.pods != b.pods:
		return a.pods < b.pods
	case a.kept != b.kept:
		return a.kept
	}
	return cmp.Or(cmp.Compare(b.free, a.free), cmp.Compare(a.node, b.node)) < 0
}

// Push implements heap.Interface.
func (q *reserveQueue) Push(e any) { *q = append(*q, e.(reserveEntry)) }

// Pop implements heap.Interface.
func (q *reserveQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}
