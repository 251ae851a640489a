package candidates

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/podview"
)

const (
	// clearlyMore is how many times the number of candidates a cluster must have for ranking to pay.
	clearlyMore = 2
	// mostTies bounds the candidates if those beyond the limit are as good as the last one. The framework never samples so
	// few nodes, whatever the profile's percentageOfNodesToScore.
	mostTies = Few - 1
	// maxRounds is how often the best class by one score may not fit before the scale of that score stays as it is.
	maxRounds = 32
)

// scratch is memory that every cycle reuses.
type scratch struct {
	// asked are the answers of filters about each variety, by part.
	asked [][]answer
	// present are the varieties that living classes have, by part, and position has the index of each in present.
	present  [][]variety
	position [][]int32
	// raw are scores by scorer and number of the variety, and scores the normalized scores of the varieties present.
	raw    [][]int64
	scores []fwk.NodeScoreList

	judges []Judge
	alive  []ranked
	// located are the living classes before they were split by place, and places the members of one by place.
	located []ranked
	places  []place
	slots   []int32
	seen    []bool
	nodes   []fwk.NodeInfo
	// statuses are the results for nodes.
	statuses []*fwk.Status
	// anchors are nodes of the classes with the best score of each scorer.
	anchors []int32
	// leaders are positions of living classes.
	leaders []int32
	scorers []scorer
}

// variety is the number of a variety, and a node that has it.
type variety struct{ number, slot int32 }

type answer uint8

const (
	unasked answer = iota
	accepted
	refused
)

// ranked is a class in the order in which classes are tried.
type ranked struct {
	// rank is the known score of the class, and an upper bound until it is exact.
	rank  int64
	class int32
	// node is the member that passed, none before any was tried, and dead if none passes.
	node  int32
	exact bool
	// images is how many of the pod's images some member has.
	images int
	// score is the locator's score of the members, which are scratch.slots[first:last], or all of the class if last is 0.
	score       int64
	first, last int32
	// taken is how many members are in a sample.
	taken int32
}

const dead = int32(-2)

// ranking is the search for the candidates of one cycle.
type ranking struct {
	*profile
	*scratch
	ctx   context.Context
	state fwk.CycleState
	pod   *v1.Pod
	// selector filters by labels, nil if the pod asks for none.
	selector fwk.FilterPlugin
	// wanted are the nodes of the pod's images.
	wanted []*slotSet
	// failures is how many nodes have failed the filters, and aheadAt how many had when nodes were last filtered ahead.
	failures, aheadAt int
	// err is set if a filter returned an error or the cycle is over.
	err bool
}

// candidates returns the names of the nodes that the framework looks at, or why it looks at all.
func (p *profile) candidates(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	result *fwk.PreFilterResult) (sets.Set[string], outcome) {
	switch {
	case !result.AllNodes():
		return nil, chosen
	case pod.Status.NominatedNodeName != "":
		return nil, nominated
	case state.IsPodGroupSchedulingCycle():
		return nil, podGroup
	}
	ownScore := prefers(pod)
	if ownScore && !p.sampleDoes(ctx, state, pod) {
		return nil, otherScore
	}
	list, err := p.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, failed
	}
	if len(list) < clearlyMore*p.plugins.limit {
		return nil, fewNodes
	}
	p.ranks.judges = p.ranks.judges[:0]
	for _, ranker := range p.plugins.rankers {
		judge := ranker.Judge(ctx, state, pod)
		if judge == nil {
			return nil, notByClass
		}
		p.ranks.judges = append(p.ranks.judges, judge)
	}
	p.index.update(list)
	p.rotation++
	p.cycle.state = state
	r := &ranking{profile: p, scratch: &p.ranks, ctx: ctx, state: state, pod: pod}
	if !ownScore {
		names, why := r.run()
		if why != otherScore || !p.sampleDoes(ctx, state, pod) {
			return names, why
		}
	}
	return r.sample(len(list))
}

// prefers reports whether the pod has preferences that kube-scheduler scores by more than the class of a node. PreScore
// would tell as well, but is slow for such pods.
func prefers(pod *v1.Pod) bool {
	for i := range pod.Spec.TopologySpreadConstraints {
		if pod.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable == v1.ScheduleAnyway {
			return true
		}
	}
	a := pod.Spec.Affinity
	return a != nil && (a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
}

func (r *ranking) run() (sets.Set[string], outcome) {
	r.live()
	if len(r.alive) == 0 {
		return nil, noneFits
	}
	r.wanted = r.index.images.find(podview.PodImages(r.pod))
	for _, step := range []func() outcome{r.prepare, r.score, r.scale} {
		if why := step(); why != restricted {
			return nil, why
		}
	}
	return r.pick()
}
