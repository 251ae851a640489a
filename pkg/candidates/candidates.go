package candidates

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Ranker is a plugin whose scores rank classes of nodes: it declares what its Filter and Score read of a node, so that
// they are called once for all nodes for which that is equal. Its NormalizeScore must not read the nodes' names.
type Ranker interface {
	fwk.FilterPlugin
	fwk.ScorePlugin
	// Candidates is how many nodes the framework looks at, 0 for all; AnyNumber leaves it to the other rankers.
	Candidates() int
	// Class appends all that Filter and Score read of the node to the key. It also returns a value for the class, which
	// the methods of Judge get. Amounts may be rounded: nodes of one class then score nearly alike.
	Class(key Key, node fwk.NodeInfo) (_ Key, class any)
	// Basis is what Class reads besides nodes, nil for nothing. When it changes, all nodes are classified again.
	Basis() any
	// Judge returns the Judge for this pod in this cycle, after PreFilter; nil if Filter and Score read more of a node
	// than its class.
	Judge(ctx context.Context, state fwk.CycleState, pod *v1.Pod) Judge
}

// Sampler is a Ranker that does not accept a sample of the nodes for all pods. Other rankers do.
type Sampler interface {
	// SampleDoes reports whether a sample is enough for the pod if another plugin scores nodes by more than their class.
	SampleDoes(ctx context.Context, state fwk.CycleState, pod *v1.Pod) bool
}

// AnyNumber is Candidates of a ranker that works with any number.
const AnyNumber = -1

// Locator is a plugin whose Score depends on where a node is, and not on its state, so that it differs within a class.
// Its NormalizeScore must not read the nodes' names, and maps the best of all scores to the highest.
type Locator interface {
	fwk.ScorePlugin
	// Locate returns what Score returns in this cycle, after PreScore, for any node.
	Locate(state fwk.CycleState) (func(fwk.NodeInfo) int64, error)
}

// Key is a key under construction. Fixed is what PreScore reads of a node, and All what Filter and Score read besides.
type Key struct{ Fixed, All []byte }

// Judge judges the classes of nodes for one pod in one scheduling cycle.
type Judge interface {
	// Refuses reports whether Filter refuses the nodes of the class.
	Refuses(class any) bool
	// Score returns what Score returns for the nodes of the class, after PreScore; member is one of them.
	Score(class any, member fwk.NodeInfo) (int64, *fwk.Status)
}

// Wrap replaces each profile that asks for candidates by one that looks at the best nodes first. The plugins of a
// profile keep the handle that they were made with: dry runs of gangs, preemption and explanations see all nodes.
func Wrap(profiles map[string]framework.Framework) {
	for name, inner := range profiles {
		if p := newProfile(inner); p != nil {
			registerMetrics()
			profiles[name] = p
		}
	}
}

// profile is a profile that looks at the best nodes first. Like the framework that it embeds, it serves one scheduling
// cycle at a time; only filters run in parallel, and they change nothing here.
type profile struct {
	framework.Framework
	plugins *plugins
	index   *index
	// rotation is where equal nodes are tried first.
	rotation int
	cycle    cycle
	ranks    scratch
}

// newProfile returns nil for a profile without rankers, and for one in which a ranker or an extender needs all nodes.
func newProfile(inner framework.Framework) *profile {
	found := pluginsOf(inner)
	if found.limit == 0 || len(inner.Extenders()) > 0 {
		return nil
	}
	p := &profile{Framework: inner, plugins: found, index: newIndex(found.rankers)}
	p.cycle.statuses = map[fwk.NodeInfo]*fwk.Status{}
	return p
}

// cycle is what was found in the current scheduling cycle.
type cycle struct {
	// state identifies the cycle, nil if nothing was found.
	state fwk.CycleState
	// restricted is set if the framework was given candidates, for which PreScore has run.
	restricted bool
	// statuses has the nodes that were filtered; nil for one that passed.
	statuses map[fwk.NodeInfo]*fwk.Status
}

// RunPreFilterPlugins runs the plugins and adds the candidates to their result.
func (p *profile) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult,
	*fwk.Status, sets.Set[string]) {
	p.cycle.state, p.cycle.restricted = nil, false
	clear(p.cycle.statuses)
	result, status, by := p.Framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return result, status, by
	}
	nodes, why := p.candidates(ctx, state, pod, result)
	cycles.WithLabelValues(p.ProfileName(), string(why)).Inc()
	klog.FromContext(ctx).V(4).Info("Ranked the nodes", "pod", klog.KObj(pod), "outcome", why, "nodes", len(nodes),
		"classes", len(p.index.byKey))
	if why != sampled && why != restricted {
		return result, status, by
	}
	p.cycle.restricted = why == restricted
	return &fwk.PreFilterResult{NodeNames: nodes}, status, by
}

// RunFilterPluginsWithNominatedPods filters the node, unless that was done in this cycle.
func (p *profile) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	node fwk.NodeInfo) *fwk.Status {
	if p.cycle.state == state {
		if status, ok := p.cycle.statuses[node]; ok {
			return status
		}
	}
	return p.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
}

// RunPreScorePlugins does nothing if PreScore has seen a node of each class: the scales that it derives from nodes must
// not depend on the number of candidates.
func (p *profile) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) *fwk.Status {
	if p.ranked(state) {
		return nil
	}
	return p.Framework.RunPreScorePlugins(ctx, state, pod, nodes)
}

// GetNodeHint returns no hint if there are candidates: the hint is from the nodes of an earlier pod, which may be
// fewer.
func (p *profile) GetNodeHint(ctx context.Context, pod *v1.Pod, signature fwk.PodSignature, state fwk.CycleState,
	cycleCount int64) string {
	if p.ranked(state) {
		return ""
	}
	return p.Framework.GetNodeHint(ctx, pod, signature, state, cycleCount)
}

// StoreScheduleResults does not store candidates: batching takes what it stores for all feasible nodes.
func (p *profile) StoreScheduleResults(ctx context.Context, signature fwk.PodSignature, hintedNode, chosenNode string,
	otherNodes framework.SortedScoredNodes, cycleCount int64) {
	if p.cycle.restricted {
		return
	}
	p.Framework.StoreScheduleResults(ctx, signature, hintedNode, chosenNode, otherNodes, cycleCount)
}

func (p *profile) ranked(state fwk.CycleState) bool {
	return p.cycle.restricted && p.cycle.state == state
}
