package candidates

import (
	"cmp"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// list finds the varieties that living classes have.
func (r *ranking) list() {
	parts := r.index.parts
	r.present, r.position = sized(r.present, len(parts)), sized(r.position, len(parts))
	for part := range parts {
		r.present[part] = r.present[part][:0]
		r.position[part] = sized(r.position[part], len(parts[part].keys))
		for i := range r.position[part] {
			r.position[part][i] = none
		}
	}
	for i := range r.alive {
		c := &r.index.classes[r.alive[i].class]
		for part, number := range c.parts {
			if at := &r.position[part][number]; *at == none {
				*at = int32(len(r.present[part]))
				r.present[part] = append(r.present[part], variety{number, c.members[0]})
			}
		}
	}
}

// listKinds finds a node of each kind that living classes have.
func (r *ranking) listKinds() {
	r.list()
	r.nodes = r.nodes[:0]
	for part, varieties := range r.present {
		r.seen = sized(r.seen, len(r.index.parts[part].kinds.keys))
		clear(r.seen)
		for _, v := range varieties {
			if seen := &r.seen[r.index.parts[part].kind[v.number]]; !*seen {
				*seen = true
				r.nodes = append(r.nodes, r.index.slots[v.slot].info)
			}
		}
	}
}

// prepare runs PreScore on a node of each kind, and keeps the scorers that it does not skip.
func (r *ranking) prepare() outcome {
	r.listKinds()
	if !r.Framework.RunPreScorePlugins(r.ctx, r.state, r.pod, r.nodes).IsSuccess() {
		return failed
	}
	skipped := r.state.GetSkipScorePlugins()
	for name := range r.plugins.weights {
		if !skipped.Has(name) && !r.plugins.decided(name, r.state, r.pod) {
			return otherScore
		}
	}
	r.scorers = r.scorers[:0]
	for _, s := range r.plugins.scorers {
		if !skipped.Has(s.Name()) {
			r.scorers = append(r.scorers, s)
		}
	}
	if l := r.plugins.locator; l != nil && !skipped.Has(l.Name()) {
		r.scorers = append(r.scorers, *l)
	}
	return restricted
}

// score asks each scorer for each variety of its part.
func (r *ranking) score() outcome {
	r.raw = sized(r.raw, len(r.scorers))
	for i, s := range r.scorers {
		if s.part == placePart {
			if !r.locate(s.ScorePlugin.(Locator)) {
				return failed
			}
			continue
		}
		r.raw[i] = sized(r.raw[i], len(r.index.parts[s.part].keys))
		for _, v := range r.present[s.part] {
			var raw int64
			var status *fwk.Status
			if info := r.index.slots[v.slot].info; s.part < firstRanker {
				raw, status = s.Score(r.ctx, r.state, r.pod, info)
			} else {
				raw, status = r.judges[s.part-firstRanker].Score(r.index.parts[s.part].shown[v.number], info)
			}
			if !status.IsSuccess() {
				return failed
			}
			r.raw[i][v.number] = raw
		}
	}
	return restricted
}

// scale normalizes the scores as the framework will. The best score of each ranker sets its scale, so that the class
// with it must have a node that passes, which becomes a candidate. Classes without one are dropped.
func (r *ranking) scale() outcome {
	for round := 0; ; round++ {
		if !r.normalize() {
			return failed
		}
		r.anchors = r.anchors[:0]
		for i, s := range r.scorers {
			if s.part == taintPart {
				continue
			}
			if node := r.best(i); node != none {
				r.anchors = append(r.anchors, node)
			} else if r.err {
				return failed
			}
		}
		living := slices.DeleteFunc(r.alive, func(e ranked) bool { return e.node == dead })
		if len(living) == len(r.alive) || round == maxRounds {
			return restricted
		}
		if r.alive = living; len(living) == 0 {
			return noneFits
		}
		r.list()
	}
}

// normalize scales the scores of the varieties present and sums them up for each class.
func (r *ranking) normalize() bool {
	r.scores = sized(r.scores, len(r.scorers))
	for i, s := range r.scorers {
		if s.part == placePart {
			r.scores[i] = sized(r.scores[i], len(r.alive))
			for at := range r.alive {
				r.scores[i][at] = fwk.NodeScore{Score: r.alive[at].score}
			}
		} else {
			r.scores[i] = sized(r.scores[i], len(r.present[s.part]))
			for at, v := range r.present[s.part] {
				r.scores[i][at] = fwk.NodeScore{Score: r.raw[i][v.number]}
			}
		}
		if extensions := s.ScoreExtensions(); extensions != nil &&
			!extensions.NormalizeScore(r.ctx, r.state, r.pod, r.scores[i]).IsSuccess() {
			return false
		}
	}
	for i := range r.alive {
		e := &r.alive[i]
		e.rank = 0
		for j, s := range r.scorers {
			e.rank += s.weight * r.of(j, i)
		}
	}
	return true
}

// of is the score of a living class by one scorer.
func (r *ranking) of(scorer, at int) int64 {
	part, class := r.scorers[scorer].part, r.alive[at].class
	if part == placePart {
		return r.scores[scorer][at].Score
	}
	return r.scores[scorer][r.position[part][r.index.classes[class].parts[part]]].Score
}

// best returns a node that passes, of the best class by one scorer; none if none passes or a filter fails. Classes with
// equal scores are tried by rank.
func (r *ranking) best(scorer int) int32 {
	before := func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.of(scorer, int(b)), r.of(scorer, int(a))), cmp.Compare(r.alive[b].rank, r.alive[a].rank),
			cmp.Compare(a, b))
	}
	r.leaders = r.leaders[:0]
	for i := range r.alive {
		if r.alive[i].node != dead {
			r.leaders = append(r.leaders, int32(i))
		}
	}
	for n, left := 0, r.leaders; len(left) > 0; n, left = n+1, left[1:] {
		switch n {
		case 0: // it usually passes, so that the others need no order
			first := slices.Index(left, slices.MinFunc(left, before))
			left[0], left[first] = left[first], left[0]
		case 1:
			slices.SortFunc(left, before)
		}
		leader := &r.alive[left[0]]
		switch {
		case r.passes(leader, r.those(left[1:])):
			return leader.node
		case r.err:
			return none
		}
	}
	return none
}

// those yields the living classes at the positions.
func (r *ranking) those(positions []int32) iter.Seq[*ranked] {
	return func(yield func(*ranked) bool) {
		for _, at := range positions {
			if !yield(&r.alive[at]) {
				return
			}
		}
	}
}

// addMost adds the highest score of fit to the rank of each class; nil scores nothing.
func (r *ranking) addMost(fit fwk.ScorePlugin) {
	if fit == nil {
		return
	}
	for i := range r.alive {
		r.alive[i].rank += fwk.MaxScore * r.plugins.weights[names.NodeResourcesFit]
	}
}

// weigh replaces the highest score of fit by its real score, and reports whether that succeeded.
func (r *ranking) weigh(e *ranked, fit fwk.ScorePlugin) bool {
	e.exact = true
	if fit == nil {
		return true
	}
	score, status := fit.Score(r.ctx, r.state, r.pod, r.index.slots[r.index.classes[e.class].members[0]].info)
	e.rank -= (fwk.MaxScore - score) * r.plugins.weights[names.NodeResourcesFit]
	return status.IsSuccess()
}

// pick takes nodes of the best classes, until the next class cannot win anymore or there are enough.
func (r *ranking) pick() (sets.Set[string], outcome) {
	skipped := r.state.GetSkipScorePlugins()
	fit := r.plugins.fit
	if skipped.Has(names.NodeResourcesFit) {
		fit = nil
	}
	unknown := int64(0)
	if !skipped.Has(names.NodeResourcesBalancedAllocation) {
		unknown += fwk.MaxScore * r.plugins.weights[names.NodeResourcesBalancedAllocation]
	}
	if len(r.wanted) > 0 {
		unknown += fwk.MaxScore * r.plugins.weights[names.ImageLocality]
	}
	r.addMost(fit)
	picked := sets.New[string]()
	var best, last int64
	for heap := newHeap(r.alive); len(heap) > 0; {
		e := &heap[0]
		if !e.exact {
			if !r.weigh(e, fit) {
				return nil, failed
			}
			e.images = r.mostImages(e)
			heap.sink(0)
			continue
		}
		n := len(picked)
		if n > 0 && e.rank+unknown < best || n >= r.plugins.limit && e.rank < last || n >= max(r.plugins.limit, mostTies) {
			break
		}
		if r.passes(e, heap.after()) {
			if n == 0 {
				best = e.rank
			}
			last = e.rank
			picked.Insert(r.name(e.node))
		} else if r.err {
			return nil, failed
		}
		heap = heap.pop()
	}
	if len(picked) == 0 {
		return nil, noneFits
	}
	for _, node := range r.anchors {
		picked.Insert(r.name(node))
	}
	return picked, restricted
}

func (r *ranking) name(at int32) string { return r.index.slots[at].info.Node().Name }

// mostImages is how many of the pod's images any member of the class has.
func (r *ranking) mostImages(e *ranked) int {
	most := 0
	if len(r.wanted) > 0 {
		for _, at := range r.members(e) {
			most = max(most, countImages(r.wanted, at))
		}
	}
	return most
}
