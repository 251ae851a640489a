package kubeview

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
)

// NodeNumber is another number when the node's slices have changed; 0 where it has no GPUs that can be claimed.
func (g *GPUClaims) NodeNumber(node string) uint64 {
	if g == nil {
		return 0
	}
	g.Latest()
	if n := g.slices.Load().nodes[node]; n != nil {
		return n.number
	}
	return 0
}

// Offer adds to what a node offers the GPUs that can be claimed there.
func (g *GPUClaims) Offer(n PricedNode) PricedNode {
	claimed := g.GPUNode(n.gpu)
	if claimed == n.gpu {
		return n
	}
	n.gpu, n.claims = claimed, g
	n.Allocatable.MilliGPU = offeredMilli(claimed.Empty())
	return n
}

func offeredMilli(inv *gpu.Inventory) int64 {
	milli := int64(0)
	for _, d := range inv.Devices {
		milli += int64(d.FreeMilli)
	}
	for _, s := range inv.Slices {
		milli += int64(s.Count * s.Milli)
	}
	return milli
}

// Asked adds to what a pod asks for the GPUs that it claims.
func (g *GPUClaims) Asked(ctx context.Context, p PricedPod, pod *v1.Pod) PricedPod {
	if p.gpu.WantsGPU() {
		return p
	}
	if claimed, ok := g.Demand(ctx, g.Pod(pod)); ok {
		p.gpu.Count, p.gpu.Milli, p.gpu.Slices = claimed.Count, claimed.Milli, claimed.Slices
	}
	return p
}
