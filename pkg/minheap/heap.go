// Package minheap is a generic heap over container/heap.
package minheap

import "container/heap"

// Heap holds values, the first by Compare at index 0 of Items. After any other change of Items, Init is needed.
type Heap[T any] struct {
	Items   []T
	Compare func(a, b T) int
}

// Init orders the items.
func (h *Heap[T]) Init() { heap.Init((*ordered[T])(h)) }

// Push adds a value.
func (h *Heap[T]) Push(v T) { heap.Push((*ordered[T])(h), v) }

// Pop removes the first value, of at least one, and returns it.
func (h *Heap[T]) Pop() T { return heap.Pop((*ordered[T])(h)).(T) }

// Fix orders the first value again, which has changed.
func (h *Heap[T]) Fix() { heap.Fix((*ordered[T])(h), 0) }

// Len is how many values there are.
func (h *Heap[T]) Len() int { return len(h.Items) }

// ordered is the heap as container/heap wants it.
type ordered[T any] Heap[T]

func (o *ordered[T]) Len() int           { return len(o.Items) }
func (o *ordered[T]) Less(i, j int) bool { return o.Compare(o.Items[i], o.Items[j]) < 0 }
func (o *ordered[T]) Swap(i, j int)      { o.Items[i], o.Items[j] = o.Items[j], o.Items[i] }

// Push implements heap.Interface.
func (o *ordered[T]) Push(x any) { o.Items = append(o.Items, x.(T)) }

// Pop implements heap.Interface.
func (o *ordered[T]) Pop() any {
	last := len(o.Items) - 1
	v := o.Items[last]
	clear(o.Items[last:]) // what it refers to may be collected
	o.Items = o.Items[:last]
	return v
}
