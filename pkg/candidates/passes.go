package candidates

import (
	"iter"

	fwk "k8s.io/kube-scheduler/framework"
)

// fewFailures is how many nodes are filtered one after the other before further nodes are filtered ahead, in parallel.
const fewFailures = 32

// passes reports whether any member passes all filters, and tries those with most of the pod's images first. Otherwise
// the first member rotates, so that a pod that fails on one of many equal nodes is not put there again and again. after
// yields the classes that are likely to be asked next.
func (r *ranking) passes(e *ranked, after iter.Seq[*ranked]) bool {
	if e.node != none {
		return e.node >= 0
	}
	members := r.members(e)
	first, most := r.rotation%len(members), 0
	if len(r.wanted) > 0 {
		for i := range members {
			at := (r.rotation + i) % len(members)
			if n := countImages(r.wanted, members[at]); n > most && r.selected(members[at]) {
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
		status, known := r.cycle.statuses[info]
		if !known {
			status = r.RunFilterPluginsWithNominatedPods(r.ctx, r.state, r.pod, info)
		}
		if status.Code() == fwk.Error {
			r.err = true
			return false
		}
		r.cycle.statuses[info] = status
		if status.IsSuccess() {
			e.node = at
			return true
		}
		if r.failures++; r.failures >= max(fewFailures, 2*r.aheadAt) {
			if r.ahead(e, after); r.err {
				return false
			}
		}
	}
	e.node = dead
	return false
}

// ahead filters nodes before they are needed, one for each that has failed so far: this at most doubles the work.
func (r *ranking) ahead(e *ranked, after iter.Seq[*ranked]) {
	r.aheadAt = r.failures
	r.nodes = r.nodes[:0]
	r.addUnfiltered(e)
	for next := range after {
		if len(r.nodes) >= r.failures {
			break
		}
		r.addUnfiltered(next)
	}
	r.filter()
}

// filter filters nodes in parallel. It keeps no errors: the framework shall meet them itself.
func (r *ranking) filter() {
	r.statuses = sized(r.statuses, len(r.nodes))
	r.Parallelizer().Until(r.ctx, len(r.nodes), func(i int) {
		r.statuses[i] = r.RunFilterPluginsWithNominatedPods(r.ctx, r.state, r.pod, r.nodes[i])
	}, "Filter")
	if r.ctx.Err() != nil { // some were not filtered
		r.err = true
		return
	}
	for i, info := range r.nodes {
		if r.statuses[i].Code() != fwk.Error {
			r.cycle.statuses[info] = r.statuses[i]
		}
	}
	clear(r.statuses)
}

// addUnfiltered adds the nodes of a class that have not been filtered.
func (r *ranking) addUnfiltered(e *ranked) {
	if e.node != none {
		return
	}
	for _, at := range r.members(e) {
		info := r.index.slots[at].info
		if _, known := r.cycle.statuses[info]; !known && r.selected(at) {
			r.nodes = append(r.nodes, info)
		}
		if len(r.nodes) >= r.failures {
			return
		}
	}
}
