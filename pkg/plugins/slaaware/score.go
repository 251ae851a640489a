package slaaware

import (
	"context"
	"errors"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/pkg/sla"
)

var _ process.Scorer = &Plugin{}

const cycleStateKey fwk.StateKey = Name + "/cycle"

// cycle is what all nodes of one scheduling cycle are judged by: one snapshot at one time.
type cycle struct {
	want    sla.Objective
	figures *signals.FigureSnapshot
	now     time.Time
}

// Clone returns the state itself, which does not change once written.
func (c *cycle) Clone() fwk.StateData { return c }

// PreScore skips Score for pods without an objective and while nothing is measured. It does not look at the nodes:
// where candidates are ranked it is given a few of them, whose figures say nothing about the others.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	c, err := p.begin(pod)
	switch {
	case err != nil:
		return fwk.AsStatus(err)
	case c.want.None() || !c.figures.Any(c.now):
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(cycleStateKey, c)
	return nil
}

func (p *Plugin) begin(pod *v1.Pod) (*cycle, error) {
	want, bad := podview.PodObjective(pod)
	if bad != nil {
		return nil, bad
	}
	return &cycle{want: want, figures: p.reader.Snapshot(), now: time.Now()}, nil
}

// cycle returns what PreScore wrote or, in a profile that enables Score alone, what it would write.
func (p *Plugin) cycle(state fwk.CycleState, pod *v1.Pod) (*cycle, error) {
	c, err := process.Read[*cycle](state, cycleStateKey)
	if errors.Is(err, fwk.ErrNotFound) {
		return p.begin(pod)
	}
	return c, err
}

// loss returns what the node loses against one that serves the pod best.
func (p *Plugin) loss(state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (sla.Loss, error) {
	c, err := p.cycle(state, pod)
	if err != nil {
		return sla.Loss{}, err
	}
	return sla.Judge(c.want, c.figures.Of(info.Node().Name, c.now), p.headroom), nil
}

// milli makes whole numbers of points.
const milli = 1000

// Score returns what the node loses, in thousandths of a point.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	loss, err := p.loss(state, pod, info)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	return int64(math.Round(loss.Sum() * milli)), nil
}

// ScoreExtensions returns the plugin, which turns losses into points.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore turns losses into points. The scale is fixed, as it has a meaning: nodes that all miss the objective
// are not made to look good by the worst of them.
func (*Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	for i := range scores {
		scores[i].Score = fwk.MaxScore - (scores[i].Score+milli/2)/milli
	}
	return nil
}

// Terms returns what the node loses; Score returns the sum.
func (p *Plugin) Terms(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (process.Cost, error) {
	loss, err := p.loss(state, pod, info)
	if err != nil {
		return process.Cost{}, err
	}
	return process.Cost{Unit: "points", Terms: []process.Term{
		{Name: "spare", Amount: loss.Spare, For: "figures that are better than the pod needs"},
		{Name: "tight", Amount: loss.Tight, For: "less headroom than wanted"},
		{Name: "missed", Amount: loss.Missed, For: "an objective that the node misses"},
		{Name: "unknown", Amount: loss.Unknown, For: "a node without figures"},
	}}, nil
}
