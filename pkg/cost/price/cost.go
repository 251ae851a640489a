package price

import "math"

// Placement is one pod on one node, as far as money is concerned.
type Placement struct {
	// Node is the node's price, divided.
	Node Split
	// Request is what the pod takes of the node.
	Request Capacity
	// KeepsAlive says that without the pod the node could be given back, so that the pod is charged for all of it.
	KeepsAlive bool
	// ExpectedMilliPods is how many pods like this one, itself included, are expected soon, in thousandths.
	ExpectedMilliPods int64
	// StrandedMilliGPU is how much GPU, free before, no pod can use once this one is there for want of CPU or memory.
	StrandedMilliGPU int64
	// Risk is that of the node's capacity type.
	Risk Interruption
	// Members is how many pods lose their work when this one does: the size of its gang, or one.
	Members int64
}

// Parts are the terms of a placement's cost.
type Parts struct {
	// Share is θ·q, what the pod pays for the part of the node that it takes.
	Share MicroDollars
	// Opening is O·(P − θ·q), the rest of the price of a node that is kept alive for the pod.
	Opening MicroDollars
	// Stranded is S, the price of the GPUs that become useless.
	Stranded MicroDollars
	// Interruption is R, the expected loss to interruptions.
	Interruption MicroDollars
}

// Sum returns D, the cost.
func (p Parts) Sum() MicroDollars {
	return p.Share.Plus(p.Opening).Plus(p.Stranded).Plus(p.Interruption)
}

// Cost returns D = θ·q + O·(P − θ·q) + S + R, in its parts: what the placement adds to the bill of an hour. Where the
// node is kept alive for the pod (O = 1), P is what starting nodes of this kind costs for all the pods that are
// expected, see Opening.
//
// sharePermille is θ: how much of its share a pod is charged on a node that runs anyway. With 1000 pods pay for what
// they take; with 0 only nodes that are kept alive cost money.
func (at *Placement) Cost(sharePermille int64) Parts {
	share := at.Node.Share(at.Request)
	parts := Parts{
		Share:        share.Scale(sharePermille, 1000),
		Stranded:     at.Node.gpuPrice(at.StrandedMilliGPU),
		Interruption: at.Risk.expectedLoss(share, at.Members),
	}
	if at.KeepsAlive {
		parts.Opening = at.Node.Opening(at.Request, at.ExpectedMilliPods).Minus(parts.Share)
	}
	return parts
}

// Opening returns what it costs to start nodes of this kind for a number of pods, in thousandths, that each make this
// request: one node's price, or that of the number of such nodes that the pods would fill. A small node is cheap for
// one pod and expensive for the next twenty, so that a growing fleet opens the nodes with the lowest price for what
// they hold, not those with the lowest price.
func (s Split) Opening(request Capacity, milliPods int64) MicroDollars {
	fit := s.Allocatable.milliTimes(request)
	if fit <= 0 || milliPods <= fit {
		return s.Price
	}
	return s.Price.Scale(milliPods, fit)
}

// milliTimes returns how many thousandths of times the capacity holds the request; the largest number if it asks for
// nothing.
func (c Capacity) milliTimes(request Capacity) int64 {
	times := int64(math.MaxInt64)
	for _, r := range [...]struct{ has, asked int64 }{
		{c.MilliCPU, request.MilliCPU}, {c.MemoryMiB, request.MemoryMiB}, {c.MilliGPU, request.MilliGPU},
	} {
		if r.asked > 0 {
			times = min(times, served(r.has, r.asked))
		}
	}
	return times
}

// HostNeed is what a GPU needs of the host to be useful.
type HostNeed struct {
	MilliCPU, MemoryMiB int64 // per whole GPU
}

// Stranded returns how much free GPU becomes useless when request is taken from free, for want of the CPU or memory
// that a pod on it would need.
func (n HostNeed) Stranded(free, request Capacity) int64 {
	after := Capacity{
		MilliCPU:  max(free.MilliCPU-request.MilliCPU, 0),
		MemoryMiB: max(free.MemoryMiB-request.MemoryMiB, 0),
		MilliGPU:  max(free.MilliGPU-request.MilliGPU, 0),
	}
	return max(n.idle(after)-n.idle(free), 0)
}

// idle returns how much of the free GPU has no CPU or memory left to go with it, in thousandths.
func (n HostNeed) idle(free Capacity) int64 {
	usable := free.MilliGPU
	if n.MilliCPU > 0 {
		usable = min(usable, served(free.MilliCPU, n.MilliCPU))
	}
	if n.MemoryMiB > 0 {
		usable = min(usable, served(free.MemoryMiB, n.MemoryMiB))
	}
	return free.MilliGPU - usable
}

// served returns how many thousandths of times an amount holds what is needed for one.
func served(amount, need int64) int64 {
	return int64(MicroDollars(amount).Scale(1000, need))
}

// Interruption is the risk of a capacity type.
type Interruption struct {
	// PerThousandHours is how often a node of that type is taken away in a thousand hours.
	PerThousandHours int64
	// LostMinutes is how much work a pod loses each time: since its last checkpoint, and to start again.
	LostMinutes int64
}

// expectedLoss returns what interruptions of one pod's node cost in an hour, when each makes all members of the pod's
// gang, whose shares are like this one, lose their work.
func (i Interruption) expectedLoss(share MicroDollars, members int64) MicroDollars {
	return share.Scale(max(members, 1), 1).Scale(i.PerThousandHours*i.LostMinutes, 1000*60)
}

// Slack returns X of the score for the cheapest of the candidates' shares: a tenth of it, at least one micro-dollar.
func Slack(cheapestShare MicroDollars) MicroDollars {
	return max(cheapestShare/10, 1)
}

// Score maps a cost to 0–100: 100·(cheapest + slack)/(cost + slack), rounded to nearest. 100 is the cheapest placement
// and no other, 50 is about twice its cost. Slack keeps two costs that are both next to nothing from being far apart.
func Score(cost, cheapest, slack MicroDollars) int64 {
	if cost <= cheapest {
		return 100
	}
	// 200·(…)/(…) rounded down, plus one, halved: rounds to nearest in whole numbers.
	twice := cheapest.Plus(slack).Scale(200, int64(cost.Plus(slack)))
	return min((int64(twice)+1)/2, 99)
}
