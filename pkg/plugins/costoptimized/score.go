package costoptimized

import (
	"context"
	"errors"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/process"
)

var _ process.Scorer = &Plugin{}

const cycleStateKey fwk.StateKey = Name + "/cycle"

// cycleState is what PreScore finds out for all candidates of one cycle.
type cycleState struct {
	// slack is X of the score.
	slack price.MicroDollars
	// members is how many pods lose their work when this one does.
	members int64
	// expectedMilliPods is how many pods, in thousandths, may use a node that is started.
	expectedMilliPods int64
}

// Clone returns the state itself, which does not change once written.
func (s *cycleState) Clone() fwk.StateData { return s }

// Raw scores are costs in micro-dollars, so that a cached raw score stays true while other nodes change. These two
// stand for what has no cost.
const (
	rawUnknown = int64(-1)
	rawLast    = int64(math.MaxInt64)
)

// Scores of nodes whose cost does not say enough. Costs end above them.
const (
	scoreLast    = 0
	scoreAvoided = 1
	scoreLowest  = 2
)

// PreScore finds the cheapest share among the candidates, the scale of the score, and how many pods may use a new node.
// If no candidate has a price and none is to come last, all are alike and Score is skipped.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	s, err := p.podState(state, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	cheapest, alike := price.MicroDollars(math.MaxInt64), true
	for _, info := range nodes {
		view := p.nodes.of(info.Node())
		alike = alike && !view.priced && !view.last(s)
		if view.priced && !view.leaving {
			cheapest = min(cheapest, view.split.Share(view.offers.Request(&s.request)))
		}
	}
	if alike {
		return fwk.NewStatus(fwk.Skip)
	}
	members := p.running.members(s.gang)
	state.Write(cycleStateKey, &cycleState{
		slack:   price.Slack(cheapest),
		members: members,
		// The rest of a gang certainly needs capacity as well.
		expectedMilliPods: max(p.expectedMilliPods(s), 1000*members),
	})
	return nil
}

// last says whether the pod goes to the node only if it fits no other.
func (v *nodeView) last(s *podState) bool { return v.leaving || !s.spot.Allows(v.capacity) }

// expectedMilliPods returns how many pods like this one, itself included, may need capacity soon: a percentage of the
// running pods with GPUs, or of those without.
func (p *Plugin) expectedMilliPods(s *podState) int64 {
	return 1000 + 10*int64(*p.settings.args.GrowthPercent)*p.running.count(s.request.WantsGPU())
}

// Score returns what the pod would cost on the node, in micro-dollars an hour.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	s, cycle, err := p.states(state, pod)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	view := p.nodes.of(info.Node())
	return p.cost(s, cycle, view, p.nodes.use(view, info)), nil
}

// Terms returns what the pod would cost on the node; Score returns the sum. A node without a price has no terms, nor
// has one that comes last whatever it costs.
func (p *Plugin) Terms(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (process.Cost, error) {
	s, cycle, err := p.states(state, pod)
	if err != nil {
		return process.Cost{}, err
	}
	view := p.nodes.of(info.Node())
	if view.last(s) || !view.priced {
		return process.Cost{}, nil
	}
	parts := p.parts(s, cycle, view, p.nodes.use(view, info))
	return process.Cost{Unit: "dollars an hour", Terms: []process.Term{
		{Name: "share", Amount: parts.Share.Dollars(), For: "the pod's share of the node"},
		{Name: "opening", Amount: parts.Opening.Dollars(), For: "a node kept alive for this pod alone"},
		{Name: "stranded GPU", Amount: parts.Stranded.Dollars(), For: "GPUs left without CPU or memory"},
		{Name: "interruption", Amount: parts.Interruption.Dollars(), For: "work lost to interruptions"},
	}}, nil
}

// states returns what is known of the pod and of the cycle.
func (p *Plugin) states(state fwk.CycleState, pod *v1.Pod) (*podState, *cycleState, error) {
	s, err := p.podState(state, pod)
	if err != nil {
		return nil, nil, err
	}
	cycle, err := readCycle(state)
	return s, cycle, err
}

// cost returns what the pod would cost on a node, in micro-dollars an hour.
func (p *Plugin) cost(s *podState, cycle *cycleState, view *nodeView, left use) int64 {
	switch {
	case view.last(s):
		return rawLast
	case !view.priced:
		return rawUnknown
	}
	return min(int64(p.parts(s, cycle, view, left).Sum()), rawLast-1)
}

// parts returns the parts of the cost on a node with a price.
func (p *Plugin) parts(s *podState, cycle *cycleState, view *nodeView, left use) price.Parts {
	request := view.offers.Request(&s.request)
	at := price.Placement{
		Node:              view.split,
		Request:           request,
		KeepsAlive:        view.removable && !left.inUse,
		ExpectedMilliPods: cycle.expectedMilliPods,
		StrandedMilliGPU:  p.stranded(view, left, request),
		Risk:              view.risk,
		Members:           cycle.members,
	}
	return at.Cost(10 * int64(*p.settings.args.ThetaPercent))
}

// stranded returns how much GPU of the node the pod would make useless. The free GPUs of the node are counted only if
// the CPU or memory that the pod leaves is too little for all of its GPUs.
func (p *Plugin) stranded(view *nodeView, left use, request price.Capacity) int64 {
	host := p.settings.args.GPUHost
	need, free := price.HostNeed{MilliCPU: *host.MilliCPU, MemoryMiB: *host.MemoryMiB}, left.host
	free.MilliGPU = view.offers.Allocatable.MilliGPU
	if free.MilliGPU == 0 || need.Stranded(free, request) == 0 {
		return 0
	}
	free.MilliGPU = left.freeMilliGPU()
	return need.Stranded(free, request)
}

// ScoreExtensions returns the plugin, which normalizes its costs.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore turns costs into scores: 100 for the cheapest, 50 for about twice its cost. A node without a price
// counts a little less than the median or comes after all with one, nodes that are about to go come last.
func (p *Plugin) NormalizeScore(_ context.Context, state fwk.CycleState, _ *v1.Pod,
	scores fwk.NodeScoreList) *fwk.Status {
	cheapest, known, unknown := rawLast, 0, 0
	for _, n := range scores {
		switch n.Score {
		case rawUnknown:
			unknown++
		case rawLast:
		default:
			known++
			cheapest = min(cheapest, n.Score)
		}
	}
	var median int64
	if unknown > 0 && known > 0 {
		median = medianCost(scores, known)
	}
	cycle, err := readCycle(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	slack := cycle.slack
	if slack == 0 {
		slack = price.Slack(price.MicroDollars(cheapest))
	}
	for i := range scores {
		cost, behind := scores[i].Score, int64(0)
		if cost == rawLast {
			scores[i].Score = scoreLast
			continue
		}
		if cost == rawUnknown {
			if *p.settings.args.UnknownPrice == config.UnknownPriceAvoid || known == 0 {
				scores[i].Score = scoreAvoided
				continue
			}
			// A point less: of two nodes that are equally good the one with a price wins.
			cost, behind = median, 1
		}
		scores[i].Score = max(price.Score(price.MicroDollars(cost), price.MicroDollars(cheapest), slack)-behind, scoreLowest)
	}
	return nil
}

// readCycle returns what PreScore wrote or, in a profile that enables Score alone, what holds without it: no scale, and
// no pods but this one.
func readCycle(state fwk.CycleState) (*cycleState, error) {
	s, err := process.Read[*cycleState](state, cycleStateKey)
	if errors.Is(err, fwk.ErrNotFound) {
		return &cycleState{members: 1, expectedMilliPods: 1000}, nil
	}
	return s, err
}

// medianCost returns the median of the known costs: for an even number the mean of the middle two, so that of two nodes
// with a price the cheaper one is ahead of a node without.
func medianCost(scores fwk.NodeScoreList, known int) int64 {
	costs := make([]int64, 0, known)
	for _, n := range scores {
		if n.Score != rawUnknown && n.Score != rawLast {
			costs = append(costs, n.Score)
		}
	}
	slices.Sort(costs)
	lower, upper := costs[(len(costs)-1)/2], costs[len(costs)/2]
	return lower + (upper-lower)/2
}
