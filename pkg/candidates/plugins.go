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

// plugins are those of a profile by the part that they have in ranking.
type plugins struct {
	// limit is how many nodes the framework is to look at: what the ranker that wants to be surest asks for, 0 for all
	// nodes.
	limit int
	// rankers are ours, and filters says which of them filter.
	rankers []Ranker
	filters []bool
	// weights are those of the profile's scores by name.
	weights map[string]int64
	// scorers score each variety of a part of the class; see index.
	scorers []scorer
	// locator scores nodes by where they are; nil if the profile has none.
	locator *scorer
	// fit scores a class as a whole; nil if the profile does not have it.
	fit fwk.ScorePlugin
	// atDoor read nothing of a node but its taints and whether it is unschedulable.
	atDoor []fwk.FilterPlugin
	// selector reads labels, and is cheaper than all filters together.
	selector fwk.FilterPlugin
	// fits refuses nodes that have too little of a resource.
	fits fwk.FilterPlugin
	// others score what a class does not tell, and are not kube-scheduler's; strangers is set if some cannot be asked.
	others    []fwk.ScorePlugin
	strangers bool
	// claims are those for volumes.
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

// pluginsOf finds the plugins. The framework lists no instances but those that wait for events, which all of these do.
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
				p.scorers = append(p.scorers, scorer{score, p.weights[name], doorPart})
			}
			if filters[name] {
				p.atDoor = append(p.atDoor, filter)
			}
		case name == names.NodeUnschedulable && filters[name]:
			p.atDoor = append(p.atDoor, filter)
		case name == names.NodeAffinity && isFilter && filters[name]:
			p.selector = filter
		case scores && !upstream.Has(name):
			p.others = append(p.others, score)
		}
	}
	p.strangers = len(unseen) > 0
	for _, ranker := range p.rankers {
		wanted := ranker.Candidates()
		if wanted == AnyNumber {
			continue
		}
		if wanted == 0 {
			p.limit = 0
			break
		}
		p.limit = max(p.limit, wanted)
	}
	return p
}

// decided says whether a score plugin that is active in this cycle scores nodes of one class alike, or decides within
// classes by what is known.
func (p *plugins) decided(name string, state fwk.CycleState, pod *v1.Pod) bool {
	switch name {
	case names.NodeResourcesFit, names.NodeResourcesBalancedAllocation, names.TaintToleration, names.ImageLocality:
		return true
	case names.DynamicResources, names.VolumeBinding:
		// Their PreScore does not say so, but they have nothing to score for a pod without claims of devices or volumes,
		// nor for one whose claims for volumes have theirs.
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
