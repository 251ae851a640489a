package gpu

// Weights scale the terms of the waste of a placement. A weight of 0 switches its term off.
type Weights struct {
	// Packing multiplies the growth of what the node is expected to strand, 1 by default.
	Packing float64
	// BestFit is the waste, in milli-GPU, of leaving 128 cores and 8 GPUs free on the node.
	BestFit float64
	// Opening is the waste, in milli-GPU, of opening an empty node of four or more GPUs while no GPU of the nodes in use
	// is allocated. It counts for the part of them that is not.
	Opening float64
	// Hosts multiplies the worth of the places for large pods that the placement takes away, 1 by default.
	Hosts float64
	// Scarcity is the waste, in milli-GPU per GPU, of taking a model whose pressure is 1 above the lowest acceptable,
	// and of taking one that will be too scarce for those who accept no other.
	Scarcity float64
	// Links multiplies the loss of link quality of a pod that prefers linked GPUs; other pods of several GPUs count a
	// fifth of it.
	Links float64
	// Capability is the waste, in milli-GPU per GPU, of taking the most capable one, which others may need more.
	Capability float64
	// Utilization is the waste, in milli-GPU, of sharing a GPU that is measured to be fully busy.
	Utilization float64
	// ForeignUse is the waste, in milli-GPU per GPU, of whole GPUs on a node that is fully busy beyond what its pods hold.
	ForeignUse float64
	// Framebuffer is the waste, in milli-GPU, of sharing a GPU whose memory is full.
	Framebuffer float64
}

// DefaultWeights are the weights the policy was measured with.
func DefaultWeights() Weights {
	return Weights{
		Packing: 1, BestFit: 30, Opening: 4000, Hosts: 1, Scarcity: WholeMilli,
		Links: 1, Capability: 50, Utilization: 50, ForeignUse: 20, Framebuffer: 20,
	}
}
