package simulation

import (
	"context"
	"runtime"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/schedulerconfig"
)

// Workers is the number of goroutines in which a scheduler may filter nodes and still be deterministic: one for each
// CPU if it looks at every node, because orderedProfile restores the order of the feasible ones; one if it stops at a
// sample, whose members would otherwise be random.
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

// Pin makes a scheduler deterministic whose informers have not started. Rank is the order of the nodes, lowest the
// lowest priority of all pods.
func Pin(w *World, rank map[string]int, lowest int32) {
	SkipHopelessPreemption(w, lowest)
	for name, profile := range w.Profiles {
		for _, plugin := range profile.PreEnqueuePlugins() {
			if p, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
				p.Evaluator.Interface = pinnedPreemption{p.Evaluator.Interface}
				p.Evaluator.Handler = serialHandle{p.Evaluator.Handler}
			}
		}
		w.Profiles[name] = orderedProfile{profile, rank}
	}
}

// orderedProfile sorts feasible nodes, which parallel filters find in any order, by rank before they are scored: which
// of several nodes with the highest score is taken depends on that order.
type orderedProfile struct {
	framework.Framework
	rank map[string]int
}

// RunPreFilterPlugins begins a cycle. It switches off the metrics that measure each plugin on each node in every tenth
// cycle, because they are not read here.
func (p orderedProfile) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState,
	pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	if cycle, ok := state.(*framework.CycleState); ok {
		cycle.SetRecordPluginMetrics(false)
	}
	return p.Framework.RunPreFilterPlugins(ctx, state, pod)
}

// RunPreScorePlugins sorts the feasible nodes. The scores get the same slice.
func (p orderedProfile) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) *fwk.Status {
	p.order(nodes)
	return p.Framework.RunPreScorePlugins(ctx, state, pod, nodes)
}

// order sorts by rank in linear time, unless there is a node that did not exist at the start.
func (p orderedProfile) order(nodes []fwk.NodeInfo) {
	slots := make([]fwk.NodeInfo, len(p.rank))
	for _, n := range nodes {
		i, known := p.rank[n.Node().Name]
		if !known {
			return
		}
		slots[i] = n
	}
	copy(nodes, slices.DeleteFunc(slots, func(n fwk.NodeInfo) bool { return n == nil }))
}

// serialHandle makes preemption try its candidates one after another, so that it always stops at the same one.
type serialHandle struct {
	fwk.Handle
}

// Parallelizer returns one that does not run in parallel.
func (serialHandle) Parallelizer() fwk.Parallelizer { return parallelize.NewParallelizer(1) }
