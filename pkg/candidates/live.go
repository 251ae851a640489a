package candidates

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/kubeview"
)

// live finds the classes that may have room.
func (r *ranking) live() {
	x, skipped := r.index, r.state.GetSkipFilterPlugins()
	r.alive = r.alive[:0]
	r.asked = sized(r.asked, len(x.parts))
	for part := range x.parts {
		r.asked[part] = sized(r.asked[part], len(x.parts[part].keys))
		clear(r.asked[part])
	}
	var milliCPU, memory int64
	if r.plugins.checksFit && !skipped.Has(names.NodeResourcesFit) {
		milliCPU, memory = kubeview.PodNeeds(r.pod)
	}
	if r.plugins.selector != nil && !skipped.Has(names.NodeAffinity) {
		r.selector = r.plugins.selector
	}
	for number := range x.classes {
		c := &x.classes[number]
		if len(c.members) == 0 || milliCPU > 0 && c.freeMilliCPU < milliCPU || memory > 0 && c.freeMemory < memory {
			continue
		}
		if r.admitted(c) {
			r.alive = append(r.alive, ranked{class: int32(number), node: none})
		}
	}
}

// admitted says whether any node of the class may take the pod as far as its class and its labels say.
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

// selected says whether the node has the labels that the pod asks for.
func (r *ranking) selected(at int32) bool {
	return r.selector == nil || r.selector.Filter(r.ctx, r.state, r.pod, r.index.slots[at].info).IsSuccess()
}

// ask says whether nodes with a variety of a part, of which member is one, may take the pod.
func (r *ranking) ask(part int, variety, member int32) answer {
	skipped := r.state.GetSkipFilterPlugins()
	if part >= firstRanker {
		i := part - firstRanker
		if r.plugins.filters[i] && !skipped.Has(r.plugins.rankers[i].Name()) && r.judges[i].Refuses(r.index.parts[part].shown[variety]) {
			return refused
		}
		return accepted
	}
	for _, filter := range r.plugins.atDoor {
		if !skipped.Has(filter.Name()) && !filter.Filter(r.ctx, r.state, r.pod, r.index.slots[member].info).IsSuccess() {
			return refused
		}
	}
	return accepted
}

// passes says whether any member passes all filters, those first that have the pod's images. Where members start rotates,
// so that a pod that fails on one of many equal nodes is not put there again and again.
func (r *ranking) passes(e *ranked) bool {
	if e.node != none {
		return e.node >= 0
	}
	members := r.members(e)
	first, most := r.turn%len(members), 0
	if len(r.wanted) > 0 {
		for i := range members {
			at := (r.turn + i) % len(members)
			if n := held(r.wanted, members[at]); n > most && r.selected(members[at]) {
				first, most = at, n
			}
		}
	}
	for i := range members {
		at := members[(first+i)%len(members)]
		if !r.selected(at) {
			continue
		}
		info := r.index.slots[at].info
		status := r.RunFilterPluginsWithNominatedPods(r.ctx, r.state, r.pod, info)
		if status.Code() == fwk.Error {
			r.err = true
			return false
		}
		r.cycle.statuses[info] = status
		if status.IsSuccess() {
			e.node = at
			return true
		}
		if r.failures++; r.failures > maxFailures {
			return false
		}
	}
	e.node = dead
	return false
}

// stuck is why passes said no without having asked all members, and else restricted.
func (r *ranking) stuck() outcome {
	switch {
	case r.err:
		return failed
	case r.failures > maxFailures:
		return hardToFind
	}
	return restricted
}

// sized returns a slice of that length, which keeps its elements.
func sized[T any](s []T, length int) []T { return slices.Grow(s, max(0, length-len(s)))[:length] }
