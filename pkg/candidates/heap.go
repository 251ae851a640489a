package candidates

import "iter"

// heap has the class to try next in front. It does without container/heap, whose calls of an interface would be most of
// the work.
type heap []ranked

func newHeap(classes []ranked) heap {
	h := heap(classes)
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
	return h
}

// before orders by rank, then by images of the pod, then by number, so that the order is always the same.
func (e *ranked) before(o *ranked) bool {
	switch {
	case e.rank != o.rank:
		return e.rank > o.rank
	case e.exact != o.exact:
		return o.exact // one that is not exact yet may turn out to have images
	case e.images != o.images:
		return e.images > o.images
	}
	return e.class < o.class
}

// after yields the classes behind the one in front, roughly in their order.
func (h heap) after() iter.Seq[*ranked] {
	return func(yield func(*ranked) bool) {
		for i := 1; i < len(h); i++ {
			if !yield(&h[i]) {
				return
			}
		}
	}
}

// sink moves an element down to its place.
func (h heap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// pop drops the first element.
func (h heap) pop() heap {
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	h.sink(0)
	return h
}
