package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/cycles"
	"berth.dev/berth/pkg/gpu"
)

var _ cycles.Scorer = &Plugin{}

// Terms returns the expected waste of the placement; Score returns the sum.
func (p *Plugin) Terms(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (cycles.Cost, error) {
	w, err := p.waste(ctx, cycle, pod, info)
	if err != nil {
		return cycles.Cost{}, err
	}
	return cycles.Cost{Unit: "milli-GPU", Terms: termsOf(&w, p.settings.spread)}, nil
}

// termsOf names the terms. Where pods are spread, packing is charged for what the node already runs.
func termsOf(w *gpu.Waste, spread bool) []cycles.Term {
	packing := "GPU that becomes unusable"
	if spread {
		packing = "GPU in use on the node"
	}
	return []cycles.Term{
		{Name: "packing", Amount: w.Packing, For: packing},
		{Name: "best fit", Amount: w.BestFit, For: "CPU and GPU left free on the node"},
		{Name: "opening", Amount: w.Opening, For: "opening an empty node"},
		{Name: "hosts", Amount: w.Hosts, For: "places that other pods need"},
		{Name: "scarcity", Amount: w.Scarcity, For: "GPUs of a model that other pods depend on"},
		{Name: "links", Amount: w.Links, For: "missing links between GPUs"},
		{Name: "capability", Amount: w.Capability, For: "GPUs that are more capable than others"},
		{Name: "utilization", Amount: w.Utilization, For: "sharing a busy GPU"},
		{Name: "foreign use", Amount: w.ForeignUse, For: "GPUs that are busy beyond what pods hold"},
		{Name: "framebuffer", Amount: w.Framebuffer, For: "sharing a GPU whose memory is in use"},
		{Name: "avoid", Amount: w.Avoid, For: "a GPU node that the pod avoids"},
		{Name: "faulty", Amount: w.Faulty, For: "GPUs that are given out although they are faulty"},
	}
}
