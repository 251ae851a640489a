package packing

import (
	"math"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gpu"
)

// What CostOptimized has by default.
var (
	hostNeed = price.HostNeed{MilliCPU: 1000}
	rates    = price.Rates{Core: 30_000, GPU: 350_000}
)

const growthPercent = 10

func splitOf(s *shape) price.Split {
	return price.NewSplit(price.MicroDollars(s.dollars*float64(price.Dollar)),
		price.Capacity{MilliCPU: s.cpuMilli, MilliGPU: int64(s.gpus) * gpu.WholeMilli}, rates)
}

// profile adds the scores of GPUAware and of CostOptimized with a weight each, as a profile with both does.
type profile struct {
	*ours
	gpuWeight, costWeight int64

	cluster      *cluster
	leastWaste   float64
	leastCost    price.MicroDollars
	slack        price.MicroDollars
	expectedPods int64
}

func newProfile(c *cluster, gpuWeight, costWeight int64) *profile {
	return &profile{ours: newOurs(gpu.DefaultWeights(), c, nil), gpuWeight: gpuWeight, costWeight: costWeight}
}

func (p *profile) begin(c *cluster, k *kind) {
	p.ours.begin(c, k)
	p.cluster = c
	p.expectedPods = max(1000+10*growthPercent*c.pods[k.milli > 0], 1000*int64(k.members))
	p.leastWaste, p.leastCost, p.slack = math.Inf(1), math.MaxInt64, math.MaxInt64
	for i := range c.machines {
		if m := &c.machines[i]; c.fits(i, k) {
			p.leastWaste = min(p.leastWaste, p.ours.value(m, i, k))
			p.leastCost = min(p.leastCost, p.cost(m, k))
			p.slack = min(p.slack, price.Slack(m.split.Share(asks(k))))
		}
	}
}

func (p *profile) value(m *machine, i int, k *kind) float64 {
	waste := gpu.Score(p.ours.value(m, i, k) - p.leastWaste)
	return -float64(p.gpuWeight*waste + p.costWeight*price.Score(p.cost(m, k), p.leastCost, p.slack))
}

func (p *profile) cost(m *machine, k *kind) price.MicroDollars {
	free := price.Capacity{MilliCPU: m.inv.FreeCPUMilli, MilliGPU: int64(m.inv.FreeMilli())}
	at := price.Placement{
		Node: m.split, Request: asks(k), KeepsAlive: m.pods == 0, ExpectedMilliPods: p.expectedPods,
		StrandedMilliGPU: hostNeed.Stranded(free, asks(k)), Members: int64(k.members),
	}
	return at.Cost(1000).Sum()
}

func asks(k *kind) price.Capacity {
	return price.Capacity{MilliCPU: k.request.CPUMilli, MilliGPU: int64(k.milli)}
}
