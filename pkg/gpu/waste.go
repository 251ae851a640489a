package gpu

// Weights scale the terms of the waste of a placement. A weight of 0 switches its term off.
type Weights struct {
	// Packing multiplies the growth of the expected residual, 1 by default.
	Packing float64
	// BestFit is the waste, in milli-GPU, of leaving 128 cores and 8 GPUs free on the node.
	BestFit float64
	// Reserve is the waste, in milli-GPU, of breaking a free 8-GPU node when few are left.
	Reserve float64
	// Scarcity is the waste, in milli-GPU per GPU, of taking a model whose pressure is 1 above the lowest acceptable.
	Scarcity float64
	// Links multiplies the loss of link quality of a pod that prefers linked GPUs; other pods of several GPUs count a
	// fifth of it.
	Links float64
	// OverProvisioning is the waste, in milli-GPU per GPU, of taking the most capable GPU known.
	OverProvisioning float64
	// Utilisation is the waste, in milli-GPU, of sharing a GPU that is measured to be fully busy.
	Utilisation float64
	// Avoid is the waste, in milli-GPU, of putting a pod that keeps off GPU nodes on one.
	Avoid float64
}

// DefaultWeights are the weights the policy was measured with.
func DefaultWeights() Weights {
	return Weights{Packing: 1, BestFit: 30, Reserve: 1000, Scarcity: 400, Links: 1, OverProvisioning: 50, Utilisation: 50, Avoid: 4000}
}

const (
	// bestFitCPUMilli and bestFitGPUs are the size of the node against which leftovers are measured.
	bestFitCPUMilli, bestFitGPUs = 128_000, 8
	// unaskedLinks is the part of the links term that counts for pods that did not ask for links.
	unaskedLinks = 0.2
	// capableMemMiB and capableGeneration describe the GPU at which over-provisioning counts in full.
	capableMemMiB, capableGeneration = 80 << 10, 90
	// reserveFactor is how many times the expected 8-GPU demand in idle capacity is kept in free 8-GPU nodes.
	reserveFactor = 2
)

// Cluster is what the waste of a placement depends on beyond the node itself.
type Cluster struct {
	Weights Weights
	// Spread turns packing round: the emptiest node is best.
	Spread bool
	// Residual is the packing value; nil or not Known until the mix has been learnt, and best-fit decides alone.
	Residual *Residual
	// FreeEightGPUNodes counts nodes of at least eight GPUs that are entirely free.
	FreeEightGPUNodes int
	// IdleMilli is the free compute of all nodes.
	IdleMilli int64
	// Pressure is the demand per capacity of each model, see Distribution.Pressure.
	Pressure map[string]float64
}

// Reserving reports whether free 8-GPU nodes are so few that breaking one is a waste. All else that Assess takes from the
// cluster depends on what it was told, not on how full it is.
func (c *Cluster) Reserving() bool {
	return c.Residual != nil && c.Residual.Known() &&
		float64(c.FreeEightGPUNodes-1) < reserveFactor*c.Residual.dist.EightGPUShare()*float64(c.IdleMilli)/(bestFitGPUs*WholeMilli)
}

// Waste is the expected waste of a placement in milli-GPU, term by term.
type Waste struct {
	Packing, BestFit, Reserve, Scarcity, Links, OverProvisioning, Utilisation, Avoid float64
}

// Sum is the waste of all terms.
func (w Waste) Sum() float64 {
	return w.Packing + w.BestFit + w.Reserve + w.Scarcity + w.Links + w.OverProvisioning + w.Utilisation + w.Avoid
}

// LowestPressure is the least pressure among the models that the request accepts.
func (c *Cluster) LowestPressure(r *Request) float64 {
	lowest, found := 0.0, false
	for m, p := range c.Pressure {
		if r.AcceptsModel(m) && (!found || p < lowest) {
			lowest, found = p, true
		}
	}
	return lowest
}

// Circumstances are what is known of a pod on a node beyond request and inventory.
type Circumstances struct {
	// LowestPressure is that of the request, the same for all nodes.
	LowestPressure float64
	// BusyMilli is the measured utilisation of the GPUs that the pod would share, 0 for none.
	BusyMilli int
	// Apart is the part of the pods it works with, 0 to 1, that the node's NVLink does not reach.
	Apart float64
	// Expected, where set, is Residual.Expected of the inventory, which does not depend on the pod.
	Expected *float64
}

// Assess estimates the waste of placing the request on a node that it fits.
func (c *Cluster) Assess(inv *Inventory, r *Request, at Circumstances) Waste {
	var w Waste
	if !inv.HasGPU() {
		return w
	}
	var after [32]int
	left, taken := takeVector(inv.freeVector(after[:0]), inv, r)
	cpuLeft := inv.FreeCPUMilli - r.CPUMilli
	total := sum(left)

	switch {
	case c.Spread:
		if capacity := len(inv.Devices) * WholeMilli; capacity > 0 {
			w.Packing = c.Weights.Packing * WholeMilli * float64(capacity-total) / float64(capacity)
		}
	case c.Residual != nil && c.Residual.Known():
		wasFree, wasEight := inv.FreeWhole(), len(inv.Devices) >= bestFitGPUs
		before := at.Expected
		if before == nil {
			before = new(c.Residual.Expected(inv))
		}
		w.Packing = c.Weights.Packing * (c.Residual.Value(inv.Model, cpuLeft, left) - *before)
		if wasEight && wasFree == len(inv.Devices) && taken > 0 && taken < bestFitGPUs*WholeMilli && c.Reserving() {
			w.Reserve = c.Weights.Reserve
		}
	}
	if !c.Spread {
		w.BestFit = c.Weights.BestFit * 0.5 * (float64(max(0, cpuLeft))/bestFitCPUMilli + float64(total)/(bestFitGPUs*WholeMilli))
	}
	gpus := float64(taken) / WholeMilli
	if taken > 0 {
		if p, ok := c.Pressure[inv.Model]; ok {
			w.Scarcity = c.Weights.Scarcity * gpus * (p - at.LowestPressure)
		}
		w.OverProvisioning = c.Weights.OverProvisioning * gpus * capability(inv)
	}
	w.Links = c.Weights.Links * gpus * WholeMilli * lostLinks(inv, r, at.Apart)
	w.Utilisation = c.Weights.Utilisation * float64(at.BusyMilli) / WholeMilli
	if r.AvoidsGPUNode && !r.WantsGPU() {
		w.Avoid = c.Weights.Avoid
	}
	return w
}

// lostLinks is the part of the best possible link quality, 0 to 1, that the pod would miss on the node: among its own
// GPUs, and to the pods it works with. Pods that did not ask for links count a fifth.
func lostLinks(inv *Inventory, r *Request, apart float64) float64 {
	lost := apart
	if r.Count > 1 && r.Whole() && !inv.TimeSliced() && r.Interconnect != InterconnectRequired {
		lost += 1 - float64(inv.LinkScore(r.Count))/MaxLinkScore
	}
	if r.Interconnect == InterconnectAny {
		lost *= unaskedLinks
	}
	return lost
}

// capability places a GPU between 0 and 1 by memory and generation; unknown ones at 0, so that nothing is held against
// a cluster without labels.
func capability(inv *Inventory) float64 {
	return min(1, float64(inv.MemMiB)/capableMemMiB*float64(inv.Generation)/capableGeneration)
}

// freeVector appends the free compute of each device. Time slices count as the part of a GPU that they are.
func (inv *Inventory) freeVector(buf []int) []int {
	if inv.TimeSliced() {
		slice := WholeMilli / inv.Replicas
		full, rest := inv.FreeReplicas/inv.Replicas, inv.FreeReplicas%inv.Replicas
		for range full {
			buf = append(buf, WholeMilli)
		}
		if rest > 0 {
			buf = append(buf, rest*slice)
		}
		return buf
	}
	for _, d := range inv.Devices {
		if !d.Unhealthy {
			buf = append(buf, d.FreeMilli)
		}
	}
	return buf
}

// Expected is the GPU, in milli-GPU, that is expected to stay unusable on the node as it is.
func (r *Residual) Expected(inv *Inventory) float64 {
	var buf [32]int
	return r.Value(inv.Model, inv.FreeCPUMilli, inv.freeVector(buf[:0]))
}

// takeVector takes the request out of the vector best-fit and returns the vector and the compute taken.
func takeVector(free []int, inv *Inventory, r *Request) ([]int, int) {
	if r.Count == 0 {
		return free, 0
	}
	share, ok := r.ShareOn(inv.MemMiB)
	if !ok {
		return free, 0
	}
	milli := share.Milli
	if inv.TimeSliced() {
		milli = WholeMilli / inv.Replicas
	}
	taken := 0
	for range min(r.Count, len(free)) {
		best := -1
		for i, f := range free {
			if f >= milli && (best < 0 || f < free[best]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		free[best] -= milli
		taken += milli
	}
	return free, taken
}

func sum(v []int) int {
	s := 0
	for _, x := range v {
		s += x
	}
	return s
}
