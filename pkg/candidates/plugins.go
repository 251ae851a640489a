package candidates

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/podview"
)

// plugins are the plugins of a profile by their role in ranking.
type plugins struct {
	// limit is how many nodes the framework looks at: the most that a ranker asks for, 0 for all nodes.
	limit   int
	rankers []Ranker
	// filters tells which of the rankers filter.
	filters []bool
	// weights are the weights of the profile's scores by name.
	weights map[string]int64
	// scorers score each variety of a part of the class; see index.
	scorers []scorer
	// locator scores nodes by where they are; nil if the profile has none.
	locator *scorer
	// fit is NodeResourcesFit as a score of whole classes, and fits as a filter; nil if the profile does not run it so.
	fit  fwk.ScorePlugin
	fits fwk.FilterPlugin
	// byTaints filter only by taints and by whether the node is unschedulable.
	byTaints []fwk.FilterPlugin
	// selector filters by labels, which costs less than all filters together.
	selector fwk.FilterPlugin
	// others are further plugins that score by more than a class and are not kube-scheduler's; unknown is set if there are
	// some whose instance is not known.
	others  []fwk.ScorePlugin
	unknown bool
	// claims are PersistentVolumeClaims.
	claims corelisters.PersistentVolumeClaimLister
}

// scorer is a plugin that scores the varieties of one part.
type scorer struct {
	fwk.ScorePlugin
	weight int64
	part   int
}

// upstream are kube-scheduler's own score plugins.
var upstream = sets.New(names.DynamicResources, names.ImageLocality, names.InterPodAffinity, names.NodeAffinity,
	names.NodeResourcesBalancedAllocation, names.NodeResourcesFit, names.PodTopologySpread, names.TaintToleration,
	names.VolumeBinding)

// pluginsOf finds the plugins. The framework lists only instances that register for events, as all of these do.
func pluginsOf(f framework.Framework) *plugins {
	p := &plugins{weights: map[string]int64{}}
	list := f.ListPlugins()
	p.claims = f.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister()
	for _, s := range list.Score.Enabled {
		p.weights[s.Name] = int64(s.Weight)
	}
	filters := map[string]bool{}
	for _, s := range list.Filter.Enabled {
		filters[s.Name] = true
	}
	unseen := sets.KeySet(p.weights).Difference(upstream)
	for _, plugin := range f.EnqueueExtensions() {
		name := plugin.Name()
		filter, isFilter := plugin.(fwk.FilterPlugin)
		score, isScore := plugin.(fwk.ScorePlugin)
		scores := isScore && p.weights[name] > 0
		ranker, isRanker := plugin.(Ranker)
		locator, isLocator := plugin.(Locator)
		unseen.Delete(name)
		switch {
		case isLocator && scores && p.locator == nil:
			p.locator = &scorer{locator, p.weights[name], placePart}
		case isRanker && (scores || filters[name]):
			p.rankers, p.filters = append(p.rankers, ranker), append(p.filters, filters[name])
			if scores {
				p.scorers = append(p.scorers, scorer{ranker, p.weights[name], firstRanker + len(p.rankers) - 1})
			}
		case name == names.NodeResourcesFit:
			if scores {
				p.fit = score
			}
			if filters[name] {
				p.fits = filter
			}
		case name == names.TaintToleration:
			if scores {
				p.scorers = append(p.scorers, scorer{score, p.weights[name], taintPart})
			}
			if filters[name] {
				p.byTaints = append(p.byTaints, filter)
			}
		case name == names.NodeUnschedulable && filters[name]:
			p.byTaints = append(p.byTaints, filter)
		case name == names.NodeAffinity && isFilter && filters[name]:
			p.selector = filter
		case scores && !upstream.Has(name):
			p.others = append(p.others, score)
		}
	}
	p.unknown = len(unseen) > 0
	p.limit = limitOf(p.rankers)
	return p
}

// limitOf returns the most candidates that a ranker asks for, 0 if one asks for all nodes or none asks.
func limitOf(rankers []Ranker) int {
	limit := 0
	for _, ranker := range rankers {
		switch wanted := ranker.Candidates(); wanted {
		case 0:
			return 0
		case AnyNumber:
		default:
			limit = max(limit, wanted)
		}
	}
	return limit
}

// decided reports whether the ranking knows the score of a plugin that is active in this cycle: by class, place or
// image.
func (p *plugins) decided(name string, state fwk.CycleState, pod *v1.Pod) bool {
	switch name {
	case names.NodeResourcesFit, names.NodeResourcesBalancedAllocation, names.TaintToleration, names.ImageLocality:
		return true
	case names.DynamicResources, names.VolumeBinding:
		// Even if PreScore does not skip VolumeBinding, it scores nothing if all volumes of the pod are bound.
		return state.GetSkipFilterPlugins().Has(name) || name == names.VolumeBinding &&
			podview.VolumesBound(pod, p.claims.PersistentVolumeClaims(pod.Namespace).Get)
	}
	for _, r := range p.rankers {
		if r.Name() == name {
			return true
		}
	}
	return p.locator != nil && p.locator.Name() == name
}
