package simulation

import (
	"context"
	"runtime"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/process/schedulerconfig"
)

// Workers is in how many goroutines a scheduler may look at nodes and still always decide the same: in one for each
// processor when every node is looked at, for then the order in which feasible ones are found can be mended (see
// orderedProfile); in one when it stops at a sample, whose members would be a matter of chance.
func Workers(config *schedulerconfig.Configuration, nodes int) int32 {
	if nodes >= candidates.Few {
		for _, p := range config.Component.Profiles {
			percentage := p.PercentageOfNodesToScore
			if percentage == nil {
				percentage = config.Component.PercentageOfNodesToScore
			}
			if percentage == nil || *percentage < 100 {
				return 1
			}
		}
	}
	return int32(min(runtime.GOMAXPROCS(0), parallelize.DefaultParallelism))
}

// Pin takes what is left of chance out of a scheduler whose informers have not started; see the comment of
// pkg/lab/replay.
// Rank is the order of the nodes, lowest the lowest priority that any pod has, and nominated is told when a pod is
// first nominated.
func Pin(w *World, rank map[string]int, lowest int32, nominated *atomic.Bool) {
	SpareHopeless(w, lowest)
	for name, profile := range w.Profiles {
		profile.SetPodNominator(nominations{w.SchedulingQueue, nominated})
		for _, plugin := range profile.PreEnqueuePlugins() {
			if p, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
				p.Evaluator.Interface = pinnedPreemption{p.Evaluator.Interface}
				p.Evaluator.Handler = serialHandle{p.Evaluator.Handler}
			}
		}
		w.Profiles[name] = &orderedProfile{Framework: profile, rank: rank}
	}
}

// nominations answer for all nodes at once, without the queue's lock, until a pod is nominated: it is asked for each
// node of each cycle, and nominations come of preemption alone. The API has heard of one when the next cycle begins.
type nominations struct {
	fwk.PodNominator
	any *atomic.Bool
}

// NominatedPodsForNode returns the pods that are nominated to run on the node.
func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo {
	if !n.any.Load() {
		return nil
	}
	return n.PodNominator.NominatedPodsForNode(node)
}

// orderedProfile brings feasible nodes, which parallel filters find in any order, into the order in which the scheduler
// got to know them, before they are scored: of several nodes with the highest score it takes one that depends on that
// order.
type orderedProfile struct {
	framework.Framework
	rank  map[string]int
	slots []fwk.NodeInfo
	// ranked finds the rank by the address, which the snapshot keeps for a node: its name would have to be fetched.
	ranked map[fwk.NodeInfo]int
}

// RunPreFilterPlugins begins a cycle. In one of ten the framework takes the time of each plugin on each node, for
// metrics that are not read here.
func (p *orderedProfile) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState,
	pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	if cycle, ok := state.(*framework.CycleState); ok {
		cycle.SetRecordPluginMetrics(false)
	}
	return p.Framework.RunPreFilterPlugins(ctx, state, pod)
}

// RunPreScorePlugins is the first that is given the feasible nodes; the same slice goes on to the scores.
func (p *orderedProfile) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) *fwk.Status {
	p.order(nodes)
	return p.Framework.RunPreScorePlugins(ctx, state, pod, nodes)
}

// order sorts by rank in linear time. A node without a rank, which did not exist at the start, stops it.
func (p *orderedProfile) order(nodes []fwk.NodeInfo) {
	if p.slots == nil || len(p.ranked) > 2*len(p.rank) {
		p.slots, p.ranked = make([]fwk.NodeInfo, len(p.rank)), make(map[fwk.NodeInfo]int, len(p.rank))
	}
	clear(p.slots)
	for _, n := range nodes {
		i, ok := p.ranked[n]
		if !ok {
			if i, ok = p.rank[n.Node().Name]; !ok {
				return
			}
			p.ranked[n] = i
		}
		p.slots[i] = n
	}
	at := 0
	for _, n := range p.slots {
		if n != nil {
			nodes[at] = n
			at++
		}
	}
}

// serialHandle makes preemption try its candidates one after another, so that it always stops at the same ones.
type serialHandle struct {
	fwk.Handle
}

// Parallelizer returns one that does not run in parallel.
func (serialHandle) Parallelizer() fwk.Parallelizer { return parallelize.NewParallelizer(1) }
