package candidates

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/podview"
)

// live finds the classes whose nodes may accept the pod.
func (r *ranking) live() {
	x, skipped := r.index, r.state.GetSkipFilterPlugins()
	r.alive = r.alive[:0]
	r.asked = sized(r.asked, len(x.parts))
	for part := range x.parts {
		r.asked[part] = sized(r.asked[part], len(x.parts[part].keys))
		clear(r.asked[part])
	}
	var asked amounts
	if r.plugins.fits != nil && !skipped.Has(names.NodeResourcesFit) {
		asked.milliCPU, asked.memory, asked.storage = podview.PodNeeds(r.pod)
	}
	if r.plugins.selector != nil && !skipped.Has(names.NodeAffinity) {
		r.selector = r.plugins.selector
	}
	for number := range x.classes {
		c := &x.classes[number]
		if len(c.members) > 0 && !c.free.below(asked) && r.admitted(c) {
			r.alive = append(r.alive, ranked{class: int32(number), node: none})
		}
	}
}

// admitted reports whether any node of the class may accept the pod by its class and its labels.
func (r *ranking) admitted(c *class) bool {
	for part, variety := range c.parts {
		known := &r.asked[part][variety]
		if *known == unasked {
			*known = r.ask(part, variety, c.members[0])
		}
		if *known == refused {
			return false
		}
	}
	return r.selector == nil || slices.ContainsFunc(c.members, r.selected)
}

// selected reports whether the node has the labels that the pod asks for.
func (r *ranking) selected(at int32) bool {
	return r.selector == nil || r.selector.Filter(r.ctx, r.state, r.pod, r.index.slots[at].info).IsSuccess()
}

// ask returns whether nodes with a variety of a part may accept the pod; member is one of them.
func (r *ranking) ask(part int, variety, member int32) answer {
	skipped, info := r.state.GetSkipFilterPlugins(), r.index.slots[member].info
	no := false
	switch part {
	case taintPart:
		no = slices.ContainsFunc(r.plugins.byTaints, func(filter fwk.FilterPlugin) bool {
			return !skipped.Has(filter.Name()) && !filter.Filter(r.ctx, r.state, r.pod, info).IsSuccess()
		})
	case countedPart:
		if fits := r.plugins.fits; fits != nil && !skipped.Has(fits.Name()) {
			status := fits.Filter(r.ctx, r.state, r.pod, info)
			no = !status.IsSuccess() && slices.ContainsFunc(status.Reasons(), ofCounted)
		}
	default:
		i := part - firstRanker
		no = r.plugins.filters[i] && !skipped.Has(r.plugins.rankers[i].Name()) &&
			r.judges[i].Refuses(r.index.parts[part].shown[variety])
	}
	if no {
		return refused
	}
	return accepted
}

// ofCounted reports whether a reason of NodeResourcesFit is about the number of pods or an extended resource. Other
// reasons show when a node of the class is tried.
func ofCounted(reason string) bool {
	name, insufficient := strings.CutPrefix(reason, "Insufficient ")
	switch v1.ResourceName(name) {
	case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return false
	}
	return insufficient || reason == "Too many pods"
}

// sized returns the slice with that length. It keeps the elements.
func sized[T any](s []T, length int) []T { return slices.Grow(s, max(0, length-len(s)))[:length] }
