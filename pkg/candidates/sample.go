package candidates

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

// sampleDoes reports whether a sample is enough for all rankers.
func (p *profile) sampleDoes(ctx context.Context, state fwk.CycleState, pod *v1.Pod) bool {
	for _, ranker := range p.plugins.rankers {
		if s, has := ranker.(Sampler); has && !s.SampleDoes(ctx, state, pod) {
			return false
		}
	}
	return true
}

// sample returns as many nodes as kube-scheduler compares by default in a cluster of that size: the best of those that
// pass, by the scores of classes. The framework compares them by the other scores as well.
func (r *ranking) sample(nodes int) (sets.Set[string], outcome) {
	wanted := Enough(nodes, 0)
	if wanted >= nodes {
		return nil, otherScore
	}
	if r.live(); len(r.alive) == 0 {
		return nil, noneFits
	}
	fit, why := r.prepareKnown()
	if why != sampled {
		return nil, why
	}
	if r.score() != restricted || !r.normalize() {
		return nil, failed
	}
	r.addMost(fit)
	picked := sets.New[string]()
	for heap := newHeap(r.alive); len(heap) > 0 && len(picked) < wanted; {
		r.nodes = r.nodes[:0]
		for len(heap) > 0 && len(r.nodes) < wanted-len(picked) {
			switch e := &heap[0]; {
			case !e.exact:
				if !r.weigh(e, fit) {
					return nil, failed
				}
				heap.sink(0)
			case r.take(e, wanted-len(picked)):
				heap = heap.pop()
			}
		}
		r.filter()
		for _, info := range r.nodes {
			status, known := r.cycle.statuses[info]
			if !known { // an error, or it was not filtered
				return nil, failed
			}
			if status.IsSuccess() {
				picked.Insert(info.Node().Name)
			}
		}
	}
	if len(picked) == 0 {
		return nil, noneFits
	}
	return picked, sampled
}

// take adds members of a class to the nodes until there are enough, and reports whether all have been taken. The first
// member rotates, as in kube-scheduler's own sample.
func (r *ranking) take(e *ranked, enough int) bool {
	members := r.members(e)
	for ; int(e.taken) < len(members); e.taken++ {
		if len(r.nodes) >= enough {
			return false
		}
		if at := members[(r.rotation+int(e.taken))%len(members)]; r.selected(at) {
			r.nodes = append(r.nodes, r.index.slots[at].info)
		}
	}
	return true
}

// prepareKnown runs PreScore of the plugins that score classes, and keeps those that it does not skip; fit is nil if it
// skips NodeResourcesFit. PreScore of kube-scheduler's other plugins may be slow, and runs later for the sample only.
// If any further plugin scores, a sample is not enough.
func (r *ranking) prepareKnown() (fit fwk.ScorePlugin, why outcome) {
	r.listKinds()
	if r.plugins.unknown || slices.ContainsFunc(r.plugins.others, func(s fwk.ScorePlugin) bool {
		pre, has := s.(fwk.PreScorePlugin)
		return !has || !pre.PreScore(r.ctx, r.state, r.pod, r.nodes).IsSkip()
	}) {
		return nil, otherScore
	}
	r.scorers = r.scorers[:0]
	known := append([]scorer{{ScorePlugin: r.plugins.fit}}, r.plugins.scorers...)
	if l := r.plugins.locator; l != nil {
		known = append(known, *l)
	}
	for _, s := range known {
		if pre, has := s.ScorePlugin.(fwk.PreScorePlugin); has {
			status := pre.PreScore(r.ctx, r.state, r.pod, r.nodes)
			if status.IsSkip() {
				continue
			}
			if !status.IsSuccess() {
				return nil, failed
			}
		}
		if s.ScorePlugin == r.plugins.fit {
			fit = s.ScorePlugin
			continue
		}
		r.scorers = append(r.scorers, s)
	}
	return fit, sampled
}

// The size of kube-scheduler's own sample of nodes.
const (
	// Few is the least size of a sample. A smaller cluster is never sampled.
	Few = 100

	startPercent  = 50
	nodesPerPoint = 125
	leastPercent  = 5
)

// Percentage returns the share of the cluster's nodes that is enough: set, or, if that is 0, a share that falls with
// the size of the cluster.
func Percentage(nodes, set int) int {
	if set > 0 {
		return set
	}
	return max(startPercent-nodes/nodesPerPoint, leastPercent)
}

// Enough returns how many nodes that fit the scheduler compares. set is percentageOfNodesToScore, 0 for the default.
func Enough(nodes, set int) int {
	if nodes < Few {
		return nodes
	}
	return min(nodes, max(nodes*Percentage(nodes, set)/100, Few))
}
