package gpuaware

import (
	"context"
	"math"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/process"
)

// scoreUnit is how many units of the score before normalization are one milli-GPU of expected waste. Scores are whole
// numbers; a millionth of a GPU is fine enough to tell any two nodes apart that differ at all.
const scoreUnit = 1000

// Score is minus the expected waste of the placement in millionths of a GPU.
func (p *Plugin) Score(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	w, err := p.waste(ctx, cycle, pod, info)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	return scoreOf(w), nil
}

// waste is the expected waste of the placement.
func (p *Plugin) waste(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (gpu.Waste, error) {
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return gpu.Waste{}, err
	}
	v := p.view(info)
	var at gpu.Placement
	var inventory *gpu.Inventory
	if s.claims.serves(info) {
		inventory = s.claims.inventory(info, v, s, &at)
	} else {
		inventory = s.live.healthy(v.of(&s.request.Request))
		at = s.live.placement(v, info, &s.request.Request, p.shared.ledger.of)
	}
	change := s.judge.Change(inventory, &s.request.Request, at)
	return s.judge.Price(&change), nil
}

func scoreOf(w gpu.Waste) int64 { return -int64(math.Round(w.Sum() * scoreUnit)) }

// ScoreExtensions returns the plugin itself.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore maps expected waste to 0–100.
func (p *Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	best := int64(math.MinInt64)
	for i := range scores {
		best = max(best, scores[i].Score)
	}
	for i := range scores {
		scores[i].Score = gpu.Score((float64(best) - float64(scores[i].Score)) / scoreUnit)
	}
	return nil
}

// Terms returns the expected waste of the placement; Score returns the sum.
func (p *Plugin) Terms(
	ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo,
) (process.Cost, error) {
	w, err := p.waste(ctx, cycle, pod, info)
	if err != nil {
		return process.Cost{}, err
	}
	return process.Cost{Unit: "milli-GPU", Terms: termsOf(&w, p.settings.spread)}, nil
}

// termsOf names the terms. Where pods are spread, packing is charged for what the node already runs.
func termsOf(w *gpu.Waste, spread bool) []process.Term {
	packing := "GPU that becomes unusable"
	if spread {
		packing = "GPU in use on the node"
	}
	return []process.Term{
		{Name: "packing", Amount: w.Packing, For: packing},
		{Name: "best fit", Amount: w.BestFit, For: "CPU and GPU left free on the node"},
		{Name: "opening", Amount: w.Opening, For: "opening an empty node"},
		{Name: "hosts", Amount: w.Hosts, For: "capacity that larger pods need"},
		{Name: "scarcity", Amount: w.Scarcity, For: "GPUs of a model that other pods depend on"},
		{Name: "links", Amount: w.Links, For: "missing links between GPUs"},
		{Name: "capability", Amount: w.Capability, For: "GPUs that are more capable than others"},
		{Name: "utilization", Amount: w.Utilization, For: "sharing a busy GPU"},
		{Name: "foreign use", Amount: w.ForeignUse, For: "GPUs that are busy although no pod uses them"},
		{Name: "framebuffer", Amount: w.Framebuffer, For: "sharing a GPU whose memory is in use"},
		{Name: "avoid", Amount: w.Avoid, For: "a GPU node that the pod avoids"},
		{Name: "faulty", Amount: w.Faulty, For: "GPUs that are given out although they are faulty"},
	}
}
