package gpu

// Weights scale the terms of the waste of a placement. A weight of 0 switches its term off.
type Weights struct {
	// Packing multiplies the growth of what the node is expected to strand, 1 by default.
	Packing float64
	// BestFit is the waste, in milli-GPU, of leaving 128 cores and 8 GPUs free on the node.
	BestFit float64
	// Sliver is the waste, in milli-GPU, of leaving nearly all of the GPU free on which a share is placed.
	Sliver float64
	// Opening is the waste, in milli-GPU, of opening an empty node of four or more GPUs while no GPU of the nodes in use
	// is allocated. It counts for the part of them that is not.
	Opening float64
	// Hosts multiplies the worth of the places for large pods that the placement takes away, 1 by default.
	Hosts float64
	// Scarcity is the waste, in milli-GPU per GPU, of taking a model whose pressure is 1 above the lowest acceptable,
	// and of taking one that will be too scarce for those who accept no other.
	Scarcity float64
	// Slices multiplies the GPU that a hardware slice makes useless to other profiles, 1 by default.
	Slices float64
	// Links multiplies the loss of link quality of a pod that prefers linked GPUs; other pods of several GPUs count a
	// fifth of it.
	Links float64
	// OverProvisioning is the waste, in milli-GPU per GPU, of taking the most capable GPU known.
	OverProvisioning float64
	// Utilization is the waste, in milli-GPU, of sharing a GPU that is measured to be fully busy.
	Utilization float64
	// ForeignUse is the waste, in milli-GPU per GPU, of whole GPUs on a node that is fully busy beyond what its pods hold.
	ForeignUse float64
	// Framebuffer is the waste, in milli-GPU, of sharing a GPU whose memory is full.
	Framebuffer float64
	// PreferMemory and PreferGeneration are the waste, in milli-GPU per GPU, of no memory and of no known generation
	// instead of the most there is.
	PreferMemory, PreferGeneration float64
	// Avoid is the waste, in milli-GPU, of putting a pod that keeps off GPU nodes on one.
	Avoid float64
}

// DefaultWeights are the weights the policy was measured with.
func DefaultWeights() Weights {
	return Weights{
		Packing: 1, BestFit: 30, Sliver: 100, Opening: 4000, Hosts: 1, Scarcity: WholeMilli,
		Slices: 1, Links: 1, OverProvisioning: 50, Utilization: 50, ForeignUse: 20, Framebuffer: 20, Avoid: 4000,
	}
}
