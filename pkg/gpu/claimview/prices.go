package claimview

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu"
)

// Node is what slices say about a node's GPUs, another object after each change; nil without any.
func (g *GPUs) Node(name string) *Node {
	if d := g.Latest().Devices(name); d != nil {
		return d.node
	}
	return nil
}

// Offer adds the GPUs that can be claimed on a node to what it offers.
func (g *GPUs) Offer(n priceview.Node) priceview.Node {
	if claimable := g.GPUNode(n.GPUNode()); claimable != n.GPUNode() {
		return n.WithGPUs(claimable)
	}
	return n
}

// Left is what is left of the GPUs that can be claimed on a node; nil without any.
func (g *GPUs) Left(n *priceview.Node, info fwk.NodeInfo) *gpu.Inventory {
	return g.Latest().Inventory(n.GPUNode(), info)
}

// Asked adds the GPUs that a pod claims to its requests.
func (g *GPUs) Asked(ctx context.Context, p priceview.Pod, pod *v1.Pod) priceview.Pod {
	g.Recent()
	if p.WantsGPU() {
		return p
	}
	if claimed := g.Pod(ctx, pod); claimed != nil {
		if r, ok := claimed.Request(); ok {
			return p.WithGPUs(&r)
		}
	}
	return p
}
