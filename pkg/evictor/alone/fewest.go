package alone

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"berth.dev/berth/pkg/clusterwide"
	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/profiles"
	"berth.dev/berth/pkg/workview"
)

// fewest is the scheduler's own preemption for pods that ask for what plugins count on a node, such as shares of GPUs.
// That spares one pod after the other, the oldest first, and so may end with two victims on one GPU where one on
// another would do.
type fewest struct {
	// Interface is what there was before: a simulation has put its own there.
	preemption.Interface
	stock    *defaultpreemption.DefaultPreemption
	profile  framework.Framework
	profiles *profiles.Set
	losses   *Losses
}

// Fewest has the scheduler's own preemption of the profile, as it stands, choose by what is lost.
func Fewest(stock *defaultpreemption.DefaultPreemption, profile framework.Framework, all *profiles.Set,
	losses *Losses) preemption.Interface {
	return &fewest{Interface: stock.Evaluator.Interface, stock: stock, profile: profile, profiles: all, losses: losses}
}

const (
	// fewestTrials is how many sets of victims are tried on a node.
	fewestTrials = 64
	// fewestCandidates is how many pods they are chosen from.
	fewestCandidates = 16
)

// SelectVictimsOnNode looks for victims that lose less work than those that the scheduler would choose, of the same
// work for fewer, and of the same number for those that take the least. They are no more important than the scheduler's
// are.
func (f *fewest) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, preemptor *v1.Pod, node fwk.NodeInfo,
	possible []*preemption.DomainVictim, budgets []*policyv1.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	filters := f.profiles.Traits(preemptor)
	counter := filters.CounterOf(preemptor)
	if counter == nil || len(possible) < 2 || !filters.HasRoom(preemptor, node) {
		return f.Interface.SelectVictimsOnNode(ctx, state, preemptor, node, possible, budgets)
	}
	before, there := state.Clone(), node.Snapshot()
	victims, violating, status := f.Interface.SelectVictimsOnNode(ctx, state, preemptor, node, possible, budgets)
	if !status.IsSuccess() || violating > 0 || len(victims) == 0 {
		return victims, violating, status
	}
	t := &fewestTrial{fewest: f, ctx: ctx, preemptor: preemptor, state: before, node: there, counter: counter,
		left: fewestTrials, given: prioritiesOf(victims)}
	better, err := t.search(victims, possible, budgets)
	switch {
	case err != nil:
		return nil, 0, fwk.AsStatus(err)
	case better != nil:
		return better, 0, status
	}
	return victims, violating, status
}

// fewestTrial is the search for fewer victims on one node.
type fewestTrial struct {
	*fewest
	ctx       context.Context
	preemptor *v1.Pod
	state     fwk.CycleState
	node      fwk.NodeInfo
	counter   clusterwide.NodeCounter
	left      int
	best      []fwk.PodInfo
	// given are the priorities of the scheduler's victims, the highest first.
	given []int32
}

// weight is what victims are compared by.
type weight struct {
	lost  int64
	pods  int
	takes int64
}

func (w weight) plus(o weight) weight {
	return weight{w.lost + o.lost, w.pods + o.pods, w.takes + o.takes}
}

func (w weight) compare(o weight) int {
	return cmp.Or(cmp.Compare(w.lost, o.lost), cmp.Compare(w.pods, o.pods), cmp.Compare(w.takes, o.takes))
}

func (t *fewestTrial) weigh(pod *v1.Pod) weight {
	cost := t.losses.cost(pod)
	return weight{cost.Lost(), 1, t.counter.Takes(pod)}
}

// weighed is a pod that may be a victim.
type weighed struct {
	fwk.PodInfo
	weight
}

// prioritiesOf returns the priorities of the pods, the highest first.
func prioritiesOf(pods []*v1.Pod) []int32 {
	priorities := make([]int32, len(pods))
	for i, pod := range pods {
		priorities[i] = corev1helpers.PodPriority(pod)
	}
	slices.SortFunc(priorities, func(a, b int32) int { return cmp.Compare(b, a) })
	return priorities
}

// search returns victims that are better than those given, nil if it finds none.
func (t *fewestTrial) search(given []*v1.Pod, possible []*preemption.DomainVictim,
	budgets []*policyv1.PodDisruptionBudget) ([]*v1.Pod, error) {
	var least weight
	for _, pod := range given {
		least = least.plus(t.weigh(pod))
	}
	candidates := t.candidates(possible, budgets)
	for size := 1; size <= len(given); size++ {
		if err := t.choose(candidates, nil, size, weight{}, &least); err != nil {
			return nil, err
		}
	}
	if t.best == nil {
		return nil, nil
	}
	return podsOf(t.best), nil
}

func podsOf(infos []fwk.PodInfo) []*v1.Pod {
	pods := make([]*v1.Pod, len(infos))
	for i, info := range infos {
		pods[i] = info.GetPod()
	}
	return pods
}

// candidates are the pods that may be victims, the least important first and of those the ones that lose and take the
// least.
func (t *fewestTrial) candidates(possible []*preemption.DomainVictim,
	budgets []*policyv1.PodDisruptionBudget) []weighed {
	_, allowed := preemption.FilterVictimsWithPDBViolation(possible, budgets)
	var candidates []weighed
	for _, victim := range allowed {
		if pods := victim.Pods(); len(pods) == 1 && victim.Priority() <= t.given[0] &&
			t.counter.Takes(pods[0].GetPod()) > 0 &&
			victim.Priority() < corev1helpers.PodPriority(t.preemptor) && t.stock.IsEligiblePod(t.node, victim, t.preemptor) {
			candidates = append(candidates, weighed{pods[0], t.weigh(pods[0].GetPod())})
		}
	}
	slices.SortFunc(candidates, func(a, b weighed) int {
		x, y := a.GetPod(), b.GetPod()
		return cmp.Or(cmp.Compare(corev1helpers.PodPriority(x), corev1helpers.PodPriority(y)), a.compare(b.weight),
			y.CreationTimestamp.Compare(x.CreationTimestamp.Time), cmp.Compare(x.UID, y.UID))
	})
	return candidates[:min(len(candidates), fewestCandidates)]
}

// choose tries the sets of a size that begin with the chosen pods, and keeps the one that weighs the least, which is
// less than least.
func (t *fewestTrial) choose(candidates []weighed, chosen []fwk.PodInfo, size int, weighs weight, least *weight) error {
	if weighs.compare(*least) >= 0 || t.left <= 0 {
		return nil
	}
	if len(chosen) == size {
		for i, priority := range prioritiesOf(podsOf(chosen)) {
			if priority > t.given[i] {
				return nil
			}
		}
		t.left--
		fits, err := t.fitsWithout(chosen)
		if err == nil && fits {
			t.best, *least = slices.Clone(chosen), weighs
		}
		return err
	}
	for i, candidate := range candidates {
		more := weighs.plus(candidate.weight)
		if err := t.choose(candidates[i+1:], append(chosen, candidate.PodInfo), size, more, least); err != nil {
			return err
		}
	}
	return nil
}

// fitsWithout reports whether the preemptor fits when the pods have gone.
func (t *fewestTrial) fitsWithout(gone []fwk.PodInfo) (bool, error) {
	state, node := t.state.Clone(), t.node.Snapshot()
	for _, info := range gone {
		if err := node.RemovePod(klog.FromContext(t.ctx), info.GetPod()); err != nil {
			return false, fmt.Errorf("removing pod %s: %w", klog.KObj(info.GetPod()), err)
		}
		status := t.profile.RunPreFilterExtensionRemovePod(t.ctx, state, t.preemptor, info, node)
		if !status.IsSuccess() {
			return false, status.AsError()
		}
	}
	return t.profile.RunFilterPluginsWithNominatedPods(t.ctx, state, t.preemptor, node).IsSuccess(), nil
}

// latest is the later, the later the first of the pods has started.
func latest(pods []*v1.Pod) int64 {
	first := int64(math.MaxInt64)
	for _, pod := range pods {
		first = min(first, workview.Started(pod).UnixNano())
	}
	return first
}

// OrderedScoreFuncs has the scheduler's own preemption choose the node on which the least is lost. Budgets come first,
// as in the core: it may exceed them. Of nodes that are alike it takes the first by name, and not whichever a map
// yields: a replay gives the same each time.
func (f *fewest) OrderedScoreFuncs(ctx context.Context, victims map[string]*extenderv1.Victims) []func(string) int64 {
	if f.losses.Loss.Limits.Unsaved == 0 {
		return f.Interface.OrderedScoreFuncs(ctx, victims)
	}
	costs, order := map[string]eviction.Cost{}, make([]eviction.Cost, 0, len(victims))
	for node, of := range victims {
		var cost eviction.Cost
		for _, pod := range of.Pods {
			cost.Join(f.losses.cost(pod))
		}
		costs[node] = cost
		order = append(order, cost)
	}
	slices.SortFunc(order, eviction.Cost.Compare)
	names := slices.Sorted(maps.Keys(victims))
	return []func(string) int64{
		func(node string) int64 { return -victims[node].NumPDBViolations },
		func(node string) int64 {
			place, _ := slices.BinarySearchFunc(order, costs[node], eviction.Cost.Compare)
			return -int64(place)
		},
		func(node string) int64 { return latest(victims[node].Pods) },
		func(node string) int64 {
			place, _ := slices.BinarySearch(names, node)
			return -int64(place)
		},
	}
}
