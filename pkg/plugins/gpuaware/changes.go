package gpuaware

import (
	"sync"
	"sync/atomic"

	"berth.dev/berth/pkg/gpu"
)

const (
	// changeChunk is how many changes are allocated at a time, and maxChunks how many such chunks there are: a kind of
	// pod changes a node in as many ways as nodes differ, and most are alike.
	changeChunk, maxChunks = 256, 64
)

// changes number what a kind of pod changes on nodes, so that the memo holds a number for each node. It is safe for
// concurrent use; nil numbers nothing.
type changes struct {
	mu      sync.Mutex
	numbers map[gpu.Change]int64
	chunks  [maxChunks]atomic.Pointer[[changeChunk]gpu.Change]
}

// number returns the change's number, and false when there are too many.
func (c *changes) number(change *gpu.Change) (int64, bool) {
	if c == nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.numbers[*change]; ok {
		return n, true
	}
	n := int64(len(c.numbers))
	if n == changeChunk*maxChunks {
		return 0, false
	}
	if c.numbers == nil {
		c.numbers = map[gpu.Change]int64{}
	}
	chunk := &c.chunks[n/changeChunk]
	if chunk.Load() == nil {
		chunk.Store(new([changeChunk]gpu.Change))
	}
	// A reader gets the number only after this.
	chunk.Load()[n%changeChunk] = *change
	c.numbers[*change] = n
	return n, true
}

// at returns the change with that number, which must not be changed.
func (c *changes) at(number int64) *gpu.Change {
	return &c.chunks[number/changeChunk].Load()[number%changeChunk]
}

// full reports whether no more changes are numbered.
func (c *changes) full() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.numbers) == changeChunk*maxChunks
}
