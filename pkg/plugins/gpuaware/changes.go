package gpuaware

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"berth.dev/berth/pkg/gpu"
)

const (
	// firstChunk is how many changes are allocated at first. Each further chunk holds twice the number of the one
	// before, up to maxChunks of them: a kind of pod changes nodes in different ways only if they differ, and most are
	// alike. Tenants decide how many kinds there are, so that one with few changes must be small.
	firstChunk, maxChunks = 16, 10
	mostChanges           = firstChunk * (1<<maxChunks - 1)
)

// changes number what a kind of pod changes on nodes, so that the memo holds a number for each node. It is safe for
// concurrent use; nil numbers nothing.
type changes struct {
	mu      sync.Mutex
	numbers map[gpu.Change]int64
	chunks  [maxChunks]atomic.Pointer[[]gpu.Change]
}

// noChange is the number of what a pod changes on a node without GPUs.
const noChange = 0

func newChanges() *changes {
	first := make([]gpu.Change, firstChunk)
	c := &changes{numbers: map[gpu.Change]int64{first[noChange]: noChange}}
	c.chunks[0].Store(&first)
	return c
}

// chunkOf returns in which chunk a number is, and where in it.
func chunkOf(number int64) (chunk, index int64) {
	number += firstChunk
	chunk = int64(bits.Len64(uint64(number/firstChunk))) - 1 //nolint:gosec // numbers are not negative
	return chunk, number - firstChunk<<chunk
}

// number returns the change's number, and false when there are too many.
func (c *changes) number(change *gpu.Change) (int64, bool) {
	if c == nil {
		return 0, false
	}
	if *change == (gpu.Change{}) {
		return noChange, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.numbers[*change]; ok {
		return n, true
	}
	n := int64(len(c.numbers))
	if n == mostChanges {
		return 0, false
	}
	at, index := chunkOf(n)
	if index == 0 {
		chunk := make([]gpu.Change, firstChunk<<at)
		c.chunks[at].Store(&chunk)
	}
	// A reader gets the number only after this.
	(*c.chunks[at].Load())[index] = *change
	c.numbers[*change] = n
	return n, true
}

// at returns the change with that number, which must not be changed.
func (c *changes) at(number int64) *gpu.Change {
	chunk, index := chunkOf(number)
	return &(*c.chunks[chunk].Load())[index]
}

// full reports whether no more changes are numbered.
func (c *changes) full() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.numbers) == mostChanges
}
