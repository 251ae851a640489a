package networktopology

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/topology"
)

var (
	_ candidates.Locator = &Plugin{}
	_ process.Scorer     = &Plugin{}
)

// slack is added to distances before they are compared, in nanoseconds: differences far below a microsecond do not
// count.
const slack = 1000

// PreScore counts the pods that the pod talks to by place. If none has a node, all nodes are alike.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	r, err := readState(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if r == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	if r.tally, err = p.peers.count(r, p.find); err != nil {
		return fwk.AsStatus(err)
	}
	if r.tally.Total() == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// find returns the place of a node, nil for one that is gone.
func (p *Plugin) find(node string) *topology.Place {
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return nil
	}
	return p.place(info.Node())
}

// place returns the place of a node by its labels.
func (p *Plugin) place(node *v1.Node) *topology.Place {
	entry := p.places.Of(node)
	if place := entry.Value.Load(); place != nil {
		return place
	}
	place := topology.NewPlace(node.Name, p.settings.levels.Path(node))
	entry.Value.Store(place)
	return place
}

// tally returns what PreScore counted or, in a profile that enables Score alone, an empty tally: all nodes are alike.
func tally(state fwk.CycleState) (*topology.Tally, error) {
	r, err := readState(state)
	if err != nil {
		return nil, err
	}
	if r == nil || r.tally == nil {
		return topology.NewTally(), nil
	}
	return r.tally, nil
}

// Score returns the mean distance to what the pod talks to, in nanoseconds for 1 MiB.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	t, err := tally(state)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	return t.Mean(p.place(info.Node()), p.settings.distances), nil
}

// Locate returns the score of a node as a function.
func (p *Plugin) Locate(state fwk.CycleState) (func(fwk.NodeInfo) int64, error) {
	t, err := tally(state)
	if err != nil {
		return nil, err
	}
	return func(info fwk.NodeInfo) int64 { return t.Mean(p.place(info.Node()), p.settings.distances) }, nil
}

// ScoreExtensions returns the plugin, which normalizes its distances.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore turns distances into scores: 100 for the nearest node, 50 for one twice as far.
func (*Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	if len(scores) == 0 {
		return nil
	}
	shortest := scores[0].Score
	for i := range scores {
		shortest = min(shortest, scores[i].Score)
	}
	for i := range scores {
		scores[i].Score = topology.Nearness(scores[i].Score, shortest, slack)
	}
	return nil
}

// Terms returns the mean distance by what the node shares with the pods; Score returns the sum.
func (p *Plugin) Terms(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) (process.Cost, error) {
	t, err := tally(state)
	if err != nil {
		return process.Cost{}, err
	}
	if t.Total() == 0 {
		return process.Cost{}, nil
	}
	const nanoseconds = 1000
	cost := process.Cost{Unit: "microseconds per MiB"}
	for i, amount := range t.Split(p.place(info.Node())) {
		part := float64(amount) / float64(t.Total()) / nanoseconds
		name, what := "same "+p.settings.steps[i], "traffic within the same "+p.settings.steps[i]
		if i == len(p.settings.steps)-1 {
			name, what = p.settings.steps[i], "traffic between nodes that share no domain"
		}
		cost.Terms = append(cost.Terms, process.Term{Name: name, Amount: part * float64(p.settings.distances[i]), For: what})
	}
	return cost, nil
}
