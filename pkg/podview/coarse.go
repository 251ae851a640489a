package podview

import "math/bits"

// CoarseStep returns the step to which amounts of a resource are rounded on a node with this total, so that equal nodes
// stay equal although their memory differs by a few pages: a power of two between a 1024th and a 512th of the total, or
// 1.
func CoarseStep(total int64) int64 { return 1 << max(0, bits.Len64(uint64(max(total, 0)))-10) }
