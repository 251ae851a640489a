package gpu

import (
	"math"
)

const (
	// bestFitCPUMilli and bestFitGPUs are the size of the node against which leftovers are measured.
	bestFitCPUMilli, bestFitGPUs = 128_000, 8
	// unaskedLinks is the part of the links term that counts for pods that did not ask for links.
	unaskedLinks = 0.2
	// openingGPUs is the number of GPUs from which on opening a node counts in full: large pods do not need small nodes.
	openingGPUs = 4
	// capableMemMiB and capableGeneration describe the GPU whose capability counts in full.
	capableMemMiB, capableGeneration = 80 << 10, 90
	// avoidMilli is the waste of placing a pod that avoids GPU nodes on one.
	avoidMilli = 4 * WholeMilli
)

// Waste is the expected waste of a placement in milli-GPU, term by term.
type Waste struct {
	Packing, BestFit, Opening, Hosts, Scarcity, Links, Capability, Utilization, Avoid float64
	ForeignUse, Framebuffer, Faulty                                                   float64
}

// Sum is the waste of all terms.
func (w Waste) Sum() float64 {
	return w.Packing + w.BestFit + w.Opening + w.Hosts + w.Scarcity + w.Links + w.Capability +
		w.Utilization + w.ForeignUse + w.Framebuffer + w.Avoid + w.Faulty
}

// halfScore is how much more waste than the best node, in milli-GPU, halves a node's score.
const halfScore = 250

// Score maps waste to 0–100, by how much more it is than that of the best node. The best node gets 100 and every node
// with more waste at most 99, so that the best stays unique however close the next is. The scale does not depend on the
// worst node: one hopeless node must not make all others look alike.
func Score(moreMilli float64) int64 {
	if moreMilli <= 0 {
		return 100
	}
	return min(99, int64(math.Round(100*halfScore/(halfScore+moreMilli))))
}

// Change is what a placement does to its node, apart from the rest of the cluster: as long as the node and the demand
// stay the same, so does the change.
type Change struct {
	// Fixed holds the terms that do not depend on the rest of the cluster.
	Fixed Waste
	// StrandedMilli is by how much the GPU grows that is expected to stay unusable on the node.
	StrandedMilli float64
	// Opens is the number of GPUs of a node that was empty, else 0.
	Opens int
	// Hosts is how many fewer large pods fit.
	Hosts Hosts
	// GPUs is how many GPUs of the node's Model are taken.
	GPUs  float64
	Model string
}

// Judge judges placements against the cluster as it is in one scheduling cycle. It is immutable, and safe for
// concurrent use.
type Judge struct {
	Weights Weights
	// Spread inverts packing: the emptiest node is best.
	Spread bool
	demand *Demand
	// opening is what it costs to open a node of openingGPUs and more. A node that is opened while those in use are
	// nearly full would have been opened soon anyway; the more of them is idle, the longer it could have stayed closed.
	opening float64
	// hostPrices is what the capacity for one pod of each size of the demand is worth, in milli-GPU.
	hostPrices [maxSizes]float64
	// byModel is what taking one GPU of a model costs pods that accept fewer models, in GPUs; nil if it is the same for
	// all.
	byModel map[string]float64
}

// NewJudge returns the judge of placements of one request. Without known demand best-fit decides.
func NewJudge(w Weights, spread bool, d *Demand, s *Supply, r *Request) *Judge {
	j := &Judge{Weights: w, Spread: spread}
	if spread || !d.Known() {
		return j
	}
	j.demand = d
	j.opening = w.Opening * s.Open()
	j.hostPrices = hostPrices(d.sizes, s.hostsFor(d.sizes), s.idleMilli)
	if len(d.confined) > 0 && r.Count > 0 {
		j.byModel = make(map[string]float64, len(d.pressure))
		lowest := d.lowestPressure(r)
		for model := range d.pressure {
			j.byModel[model] = d.scarcity(model, lowest)
		}
	}
	return j
}

// Placement is what is known of a pod on a node beyond request and inventory.
type Placement struct {
	// BusyMilli is the measured utilization of the GPUs that the pod would share, 0 for none.
	BusyMilli int
	// ForeignMilli is how much busier the node is measured to be than its pods account for, per GPU.
	ForeignMilli int
	// FullMilli is the part of the memory of the GPUs that the pod would share that is measured to be in use.
	FullMilli int
	// Allocated reports that an allocator chooses the devices. Granted are these devices.
	Allocated bool
	Granted   []Grant
}

// Price values a change against the rest of the cluster.
func (j *Judge) Price(c *Change) Waste {
	w := c.Fixed
	if j.demand == nil {
		return w
	}
	w.Packing = j.Weights.Packing * c.StrandedMilli
	if c.Opens > 0 {
		w.Opening = j.opening * min(1, float64(c.Opens)/openingGPUs)
	}
	for i, lost := range c.Hosts {
		w.Hosts += float64(lost) * j.hostPrices[i]
	}
	w.Hosts *= j.Weights.Hosts
	w.Scarcity = j.Weights.Scarcity * c.GPUs * j.byModel[c.Model]
	return w
}

// Change computes what the placement does to its node.
func (j *Judge) Change(inv *Inventory, r *Request, at Placement) Change {
	var c Change
	if !inv.HasGPU() {
		return c
	}
	var before, after [32]int
	free := inv.freeVector(before[:0])
	var left []int
	var taken int
	if at.Allocated {
		left, taken = inv.takeGranted(after[:0], at.Granted)
		c.Fixed.Faulty = faultyMilli * float64(inv.faulty(at.Granted))
	} else {
		left, taken = takeVector(append(after[:0], free...), inv, r)
	}
	cpuLeft := inv.FreeCPUMilli - r.CPUMilli
	total := sum(left)
	c.GPUs, c.Model = float64(taken)/WholeMilli, inv.Model

	if j.Spread {
		if capacity := len(inv.Devices) * WholeMilli; capacity > 0 {
			c.Fixed.Packing = j.Weights.Packing * WholeMilli * float64(capacity-total) / float64(capacity)
		}
	} else {
		c.Fixed.BestFit = j.Weights.BestFit * 0.5 * (float64(max(0, cpuLeft))/bestFitCPUMilli +
			float64(total)/(bestFitGPUs*WholeMilli))
	}
	if j.demand != nil {
		if !inv.InUse {
			c.Opens = len(inv.Devices) + inv.SlicedGPUs
		}
		c.Hosts = hostsOf(j.demand.sizes, Headroom{inv.wholes(free), inv.FreeCPUMilli})
		c.Hosts.add(hostsOf(j.demand.sizes, Headroom{inv.wholes(left), cpuLeft}), -1)
		c.StrandedMilli = j.demand.stranding.Value(inv.Model, cpuLeft, left) - j.demand.stranding.Value(inv.Model,
			inv.FreeCPUMilli, free)
	}
	c.Fixed.Capability = j.Weights.Capability * c.GPUs * capability(inv)
	c.Fixed.Links = j.Weights.Links * c.GPUs * WholeMilli * lostLinks(inv, r, &at)
	c.Fixed.Utilization = j.Weights.Utilization * float64(at.BusyMilli) / WholeMilli
	c.Fixed.Framebuffer = j.Weights.Framebuffer * float64(at.FullMilli) / WholeMilli
	c.Fixed.ForeignUse = j.Weights.ForeignUse * c.GPUs * float64(at.ForeignMilli) / WholeMilli
	if r.AvoidsGPUNode && !r.WantsGPU() {
		c.Fixed.Avoid = avoidMilli
	}
	return c
}

// lostLinks is the part of the best possible link quality, 0 to 1, that the pod would miss on the node. For pods that
// did not ask for links it counts a fifth, against the best that this node offers when it is empty: a bad set of GPUs
// costs them, a model without links does not.
func lostLinks(inv *Inventory, r *Request, at *Placement) float64 {
	count, score, best := r.Count, maxLinkScore, maxLinkScore
	if at.Allocated {
		count, score = gpusOf(at.Granted).count, inv.linkScoreOf(at.Granted)
	} else if count > 1 && r.Whole() && !inv.TimeSliced() && r.Interconnect != InterconnectRequired {
		score, _ = inv.bestFree(count, false)
	}
	if r.Interconnect == InterconnectAny && score < best {
		_, best, _ = inv.best(inv.devicesThat(func(Device) bool { return true }), count, false)
	}
	lost := float64(max(0, best-score)) / maxLinkScore
	if r.Interconnect == InterconnectAny {
		lost *= unaskedLinks
	}
	return lost
}

// capability rates a GPU from 0 to 1 by memory and generation; 0 where these are unknown, so that nodes without labels
// are not charged.
func capability(inv *Inventory) float64 {
	return min(1, float64(inv.MemMiB)/capableMemMiB*float64(inv.Generation)/capableGeneration)
}

// freeVector appends the free compute of each device that may be given out. Time slices count as parts of GPUs.
func (inv *Inventory) freeVector(buf []int) []int {
	if inv.TimeSliced() {
		for range min(inv.FreeReplicas/inv.Replicas, len(inv.Devices)) {
			buf = append(buf, WholeMilli)
		}
		if rest := inv.FreeReplicas % inv.Replicas; rest > 0 {
			buf = append(buf, rest*WholeMilli/inv.Replicas)
		}
		return buf
	}
	for _, d := range inv.Devices {
		if !d.Unhealthy && d.tasksLeft() != 0 {
			buf = append(buf, d.FreeMilli)
		}
	}
	return buf
}

// takeVector takes the request out of the vector best-fit and returns the vector and the compute taken.
func takeVector(free []int, inv *Inventory, r *Request) (left []int, used int) {
	if r.Count == 0 {
		return free, 0
	}
	if inv.TimeSliced() {
		before, after := sum(free), *inv
		after.FreeReplicas -= min(r.Count, inv.FreeReplicas)
		left = after.freeVector(free[:0])
		return left, before - sum(left)
	}
	share, ok := r.ShareOn(inv.MemMiB)
	if inv.unlike() {
		_, share, ok = Choose(inv, r)
	}
	if !ok {
		return free, 0
	}
	return free, place(free, r.Count, share.Milli)
}

// wholes counts the GPUs of a free vector that are entirely free. Time slices never add up to one.
func (inv *Inventory) wholes(free []int) int {
	if inv.TimeSliced() {
		return 0
	}
	n := 0
	for _, f := range free {
		if f >= WholeMilli {
			n++
		}
	}
	return n
}

func sum(v []int) int {
	s := 0
	for _, x := range v {
		s += x
	}
	return s
}

// Weights scale the terms of the waste of a placement. A weight of 0 switches its term off.
type Weights struct {
	// Packing multiplies the growth of what the node is expected to strand, 1 by default.
	Packing float64
	// BestFit is the waste, in milli-GPU, of leaving 128 cores and 8 GPUs free on the node.
	BestFit float64
	// Opening is the waste, in milli-GPU, of opening an empty node of four or more GPUs while no GPU of the nodes in use
	// is allocated. It counts for the part of them that is not.
	Opening float64
	// Hosts multiplies the worth of the capacity for large pods that the placement uses up, 1 by default.
	Hosts float64
	// Scarcity is the waste, in milli-GPU per GPU, of taking a model whose pressure is 1 above the lowest acceptable.
	Scarcity float64
	// Links multiplies the loss of link quality of a pod that prefers linked GPUs; other pods of several GPUs count a
	// fifth of it.
	Links float64
	// Capability is the waste, in milli-GPU per GPU, of taking the most capable one, which others may need more.
	Capability float64
	// Utilization is the waste, in milli-GPU, of sharing a GPU that is measured to be fully busy.
	Utilization float64
	// ForeignUse is the waste, in milli-GPU per GPU, of whole GPUs on a node that is fully busy although no pod uses them.
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
