package podview

import "math/bits"

// CoarseStep is the step to which an amount may be rounded of a resource that a node has that much of, to tell nodes
// apart: a power of two between a 1024th and a 512th of it, or one. Nodes of one kind report amounts of memory that
// differ by a few pages, and would all be different otherwise.
func CoarseStep(total int64) int64 { return 1 << max(0, bits.Len64(uint64(max(total, 0)))-10) }
