package candidates

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/podview"
)

const (
	// clearlyMore is how many times the candidates a cluster must have for ranking to be worth its while.
	clearlyMore = 2
	// mostTies is how many candidates there may be when those beyond the limit are as good as the last one. With so
	// few nodes the framework never looks at a sample, whatever the profile's percentageOfNodesToScore.
	mostTies = Few - 1
	// maxRounds is how often the best class by one score may turn out not to fit before the scale of that score is left
	// as it is.
	maxRounds = 32
)

// scratch is memory that every cycle reuses.
type scratch struct {
	// asked are the answers of rankers and of the filters at the door, by part and variety.
	asked [][]answer
	// present are the varieties that living classes have, by part, and position is where a variety stands there.
	present  [][]variety
	position [][]int32
	// raw are scores by scorer and number of the variety, and scores those of the varieties present on the common scale.
	raw    [][]int64
	scores []fwk.NodeScoreList

	// judges are those of the rankers.
	judges []Judge
	alive  []ranked
	// located are the classes as they were before they were split by place, places their members by place.
	located []ranked
	places  []place
	slots   []int32
	seen    []bool
	nodes   []fwk.NodeInfo
	// statuses are those of nodes that are filtered ahead of their turn.
	statuses []*fwk.Status
	anchors  []int32
	// leaders are positions of living classes.
	leaders []int32
	scorers []scorer
}

// variety is one with a node that has it.
type variety struct{ number, slot int32 }

type answer uint8

const (
	unasked answer = iota
	accepted
	refused
)

// ranked is a class in the order in which classes are tried.
type ranked struct {
	// rank is the score of the class by what is known, and at most that until it is exact.
	rank  int64
	class int32
	// node is the member that passed, none while none has been tried and dead when none does.
	node  int32
	exact bool
	// images is how many of the pod's images some member has.
	images int
	// score is that of the locator, of the members from first to last of the scratch's slots; all members if last is 0.
	score       int64
	first, last int32
	// taken is how many members are in a sample.
	taken int32
}

const dead = int32(-2)

// ranking is one cycle's way to its candidates.
type ranking struct {
	*profile
	*scratch
	ctx   context.Context
	state fwk.CycleState
	pod   *v1.Pod
	// selector reads labels; nil where the pod asks for none.
	selector fwk.FilterPlugin
	// wanted are the nodes of the pod's images.
	wanted []*slotSet
	// failures is how many nodes have failed the filters, and aheadAt how many had when others were last filtered ahead
	// of their turn.
	failures, aheadAt int
	// err is set if a filter returned an error or the cycle is over.
	err bool
}

// candidates returns the names of the nodes that the framework is to look at, or why it is to look at all.
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
	undecided := prefers(pod)
	if undecided && !p.sampleDoes(ctx, state, pod) {
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
	p.turn++
	p.cycle.state = state
	r := &ranking{profile: p, scratch: &p.ranks, ctx: ctx, state: state, pod: pod}
	if !undecided {
		names, why := r.run()
		if why != otherScore || !p.sampleDoes(ctx, state, pod) {
			return names, why
		}
	}
	return r.sample(len(list))
}

// prefers spares pods with preferences that only their own nodes can answer what leads up to that finding.
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
