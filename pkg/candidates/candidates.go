package candidates

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Ranker is a plugin whose scores rank the classes of nodes. It says what of a node its Filter and Score read, so that
// they need not be asked for two nodes for which that is equal. Its NormalizeScore must not read the nodes' names.
type Ranker interface {
	fwk.FilterPlugin
	fwk.ScorePlugin
	// Candidates is how many nodes the framework is to look at, 0 for all; AnyNumber leaves it to the other rankers.
	Candidates() int
	// Class makes a key of all that Filter and Score read of the node, and returns it with what a Judge wants to be
	// shown of nodes with that key. Amounts may be rounded: nodes of one class then score nearly alike.
	Class(key Key, node fwk.NodeInfo) (_ Key, class any)
	// Basis is what Class reads besides nodes, nil for nothing. When it changes all nodes are classified again.
	Basis() any
	// Judge returns who judges classes for this pod in this cycle, after PreFilter; nil where Filter and Score read
	// more of a node than its class.
	Judge(ctx context.Context, state fwk.CycleState, pod *v1.Pod) Judge
}

// Sampler is a Ranker that wants more than a sample of the nodes compared for some pods. Others are content with one.
type Sampler interface {
	// SampleDoes reports whether a sample will do for the pod where a plugin scores nodes that knows more of them than
	// their class.
	SampleDoes(ctx context.Context, state fwk.CycleState, pod *v1.Pod) bool
}

// AnyNumber is what a ranker wants that is right for any number of candidates.
const AnyNumber = -1

// Locator is a plugin whose Score depends on where a node is, and not on its state: nodes of one class differ in it.
// Its NormalizeScore must not read the nodes' names, and maps the best of all scores to the highest.
type Locator interface {
	fwk.ScorePlugin
	// Locate returns what Score returns in this cycle, after PreScore, for any node.
	Locate(state fwk.CycleState) (func(fwk.NodeInfo) int64, error)
}

// Key is a key in the making. Fixed is what PreScore reads of a node; nodes that differ in All alone are one to it.
type Key struct{ Fixed, All []byte }

// Judge judges the classes of nodes for one pod in one scheduling cycle.
type Judge interface {
	// Refuses reports whether Filter refuses the nodes of the class.
	Refuses(class any) bool
	// Score returns what Score returns for the nodes of the class; member is one of them. PreScore has run.
	Score(class any, member fwk.NodeInfo) (int64, *fwk.Status)
}

// Wrap replaces each profile that asks for candidates by one that looks at the best nodes first. The plugins of a
// profile keep the handle that they were made with: gangs that are tried out, preemption and explanations see all
// nodes.
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
	turn    int
	cycle   cycle
	ranks   scratch
}

// newProfile returns nil for a profile whose plugins rank no nodes, or in which a ranker or an extender wants all to be
// seen.
func newProfile(inner framework.Framework) *profile {
	found := pluginsOf(inner)
	if found.limit == 0 || len(inner.Extenders()) > 0 {
		return nil
	}
	p := &profile{Framework: inner, plugins: found, index: newIndex(found.rankers)}
	p.cycle.statuses = map[fwk.NodeInfo]*fwk.Status{}
	return p
}

// cycle is what was found in the scheduling cycle of the moment.
type cycle struct {
	// state tells the cycle apart. It is nil where nothing was found out.
	state fwk.CycleState
	// restricted reports that the framework was given candidates, whose scores are prepared.
	restricted bool
	// statuses are those of the nodes that were filtered. A node that passed has none, but is in the map.
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
	if why == sampled {
		klog.FromContext(ctx).V(4).Info("Looking at a sample of nodes", "pod", klog.KObj(pod), "nodes", len(nodes))
		return &fwk.PreFilterResult{NodeNames: nodes}, status, by
	}
	if why != restricted {
		klog.FromContext(ctx).V(4).Info("Looking at all nodes", "pod", klog.KObj(pod), "reason", why)
		return result, status, by
	}
	klog.FromContext(ctx).V(4).Info("Looking at the best nodes", "pod", klog.KObj(pod), "nodes", len(nodes),
		"classes", len(p.index.byKey))
	p.cycle.restricted = true
	return &fwk.PreFilterResult{NodeNames: nodes}, status, by
}

// RunFilterPluginsWithNominatedPods returns what was found in this cycle, and else filters the node.
func (p *profile) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	node fwk.NodeInfo) *fwk.Status {
	if p.cycle.state == state {
		if status, ok := p.cycle.statuses[node]; ok {
			return status
		}
	}
	return p.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
}

// RunPreScorePlugins does nothing where PreScore has seen a node of each class: scales that it derives from the nodes
// must not depend on how many candidates there are.
func (p *profile) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) *fwk.Status {
	if p.ranked(state) {
		return nil
	}
	return p.Framework.RunPreScorePlugins(ctx, state, pod, nodes)
}

// GetNodeHint hints at nothing where there are candidates: the hint is drawn from an older pod's nodes, which may be
// fewer.
func (p *profile) GetNodeHint(ctx context.Context, pod *v1.Pod, signature fwk.PodSignature, state fwk.CycleState,
	cycleCount int64) string {
	if p.ranked(state) {
		return ""
	}
	return p.Framework.GetNodeHint(ctx, pod, signature, state, cycleCount)
}

// StoreScheduleResults keeps candidates out of what batching remembers as all feasible nodes.
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
