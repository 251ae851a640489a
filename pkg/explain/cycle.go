package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/plugins/coscheduling"
)

// cycle runs the scheduling cycle of a pod for every node, where the scheduler stops when it has enough of them.
func (w *world) cycle(ctx context.Context, e *Explanation, pod *v1.Pod) error {
	state := framework.NewCycleState()
	statuses, filtered, err := w.filter(ctx, state, pod)
	if err != nil {
		return err
	}
	var feasible []fwk.NodeInfo
	var rejected []Node
	for i, status := range statuses {
		if status.IsSuccess() {
			feasible = append(feasible, w.infos[i])
			continue
		}
		rejected = append(rejected, rejectedNode(w.infos[i], status))
	}
	if err := w.score(ctx, e, state, pod, feasible); err != nil {
		return err
	}
	slices.SortFunc(rejected, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	e.Nodes = append(e.Nodes, rejected...)
	if len(feasible) == 0 {
		if e.selector = unmatched(pod, w.infos); filtered {
			e.Closest, e.hopeless = w.closest(ctx, state, pod, statuses)
		}
		if e.Gang == nil && len(e.PreEnqueue) == 0 {
			e.Preemption = w.preempt(ctx, state, pod, statuses)
		}
	}
	return nil
}

func rejectedNode(info fwk.NodeInfo, status *fwk.Status) Node {
	return Node{Name: info.Node().Name, Rejected: &Rejection{Plugin: status.Plugin(), Reasons: reasons(status)}}
}

// filter returns the status of each node. Filtered is false if PreFilter rejected the pod.
func (w *world) filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (statuses []*fwk.Status, filtered bool,
	err error) {
	infos := w.infos
	statuses = make([]*fwk.Status, len(infos))
	left, status, narrowing := w.fw.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, false, status.AsError()
		}
		for i := range statuses {
			statuses[i] = status
		}
		return statuses, false, nil
	}
	w.fw.Parallelizer().Until(ctx, len(infos), func(i int) {
		if !left.AllNodes() && !left.NodeNames.Has(infos[i].Node().Name) {
			statuses[i] = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) are not among those that the pod asks for").
				WithPlugin(strings.Join(sets.List(narrowing), ", "))
			return
		}
		statuses[i] = w.fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, infos[i])
	}, metrics.Filter)
	for i, s := range statuses {
		if !s.IsSuccess() && !s.IsRejected() {
			return nil, false, fmt.Errorf("filtering node %s: %w", infos[i].Node().Name, s.AsError())
		}
	}
	return statuses, true, nil
}

// score ranks the feasible nodes.
func (w *world) score(ctx context.Context, e *Explanation, state fwk.CycleState, pod *v1.Pod,
	feasible []fwk.NodeInfo) error {
	if len(feasible) == 0 {
		return nil
	}
	if status := w.fw.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return status.AsError()
	}
	scores, status := w.fw.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	weights := map[string]int64{}
	for _, p := range w.fw.ListPlugins().Score.Enabled {
		weights[p.Name] = int64(p.Weight)
	}
	for ranked := framework.NewSortedScoredNodes(scores); ranked.Len() > 0; {
		e.Nodes = append(e.Nodes, scoredNode(ranked.Pop(), weights))
	}
	if err := w.addCosts(ctx, e.Nodes, state, pod, feasible); err != nil {
		return err
	}
	e.Winner = e.Nodes[0].Name
	e.findRunnerUp()
	w.noteSample(e, len(feasible))
	return nil
}

func scoredNode(s fwk.NodePluginScores, weights map[string]int64) Node {
	n := Node{Name: s.Name, Total: s.TotalScore}
	for i, weighted := range s.Scores {
		weight := max(weights[weighted.Name], 1)
		score := Score{Plugin: weighted.Name, Weight: weight, Weighted: weighted.Score, Normalised: weighted.Score / weight}
		if i < len(s.RawScores) {
			score.Raw = s.RawScores[i].Score
		}
		n.Scores = append(n.Scores, score)
	}
	slices.SortStableFunc(n.Scores, func(a, b Score) int { return cmp.Compare(b.Weight, a.Weight) })
	return n
}

// noteSample adds a note if the scheduler would have looked at only a part of the feasible nodes.
func (w *world) noteSample(e *Explanation, feasible int) {
	all := len(w.infos)
	percentage := 0
	if p := w.fw.PercentageOfNodesToScore(); p != nil {
		percentage = int(*p)
	} else if w.percentage != nil {
		percentage = int(*w.percentage)
	}
	if enough := candidates.Enough(all, percentage); feasible > enough {
		e.Notes = append(e.Notes, fmt.Sprintf(
			"the scheduler looks for %d nodes that fit and stops (percentageOfNodesToScore is %d); here all %d were compared, "+
				"so it may take another", enough, candidates.Percentage(all, percentage), feasible))
	}
}

// preempt runs the scheduler's preemption in memory. Statuses are those of the nodes after the cycle, none for a gang.
func (w *world) preempt(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses []*fwk.Status) *Preemption {
	fw := w.AllNodes[pod.Spec.SchedulerName]
	if !fw.HasPostFilterPlugins() {
		return nil
	}
	byNode := framework.NewDefaultNodeToStatus()
	for i, s := range statuses {
		byNode.Set(w.infos[i].Node().Name, s)
	}
	now := time.Now()
	result, status := fw.RunPostFilterPlugins(ctx, state, pod, byNode)
	w.Settle()
	nominated := func() bool {
		return status.IsSuccess() && result != nil && result.NominatingInfo != nil && result.NominatedNodeName != ""
	}
	if !nominated() {
		// The search for a gang, or among gangs, has run in the background. The next try carries out its result.
		state = framework.NewCycleState()
		_, _, _ = fw.RunPreFilterPlugins(ctx, state, pod)
		result, status = fw.RunPostFilterPlugins(ctx, state, pod, byNode)
		w.Settle()
	}
	p := &Preemption{Victims: []string{}, Losses: []Loss{}, Spared: []Loss{}}
	for name := range w.Evicted() {
		p.Victims = append(p.Victims, name.String())
	}
	switch {
	case nominated():
		p.Node = result.NominatedNodeName
	case len(p.Victims) == 0 || w.leader == nil:
		p.Victims, p.Message = []string{}, status.Message()
		return p
	}
	slices.Sort(p.Victims)
	if gangs := coscheduling.Of(w.fw); gangs != nil {
		compareLosses(gangs.Loss(), p, w.infos, pod, now)
	}
	return p
}
