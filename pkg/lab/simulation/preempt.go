package simulation

import (
	"context"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// SkipHopelessPreemption skips default preemption for pods that cannot have victims, and makes it begin at the first
// node for others. Lowest is the lowest priority of all pods.
func SkipHopelessPreemption(w *World, lowest int32) {
	for _, profile := range w.Profiles {
		for _, plugin := range profile.PreEnqueuePlugins() {
			if p, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
				p.Evaluator.Interface = skippingPreemption{p.Evaluator.Interface, lowest}
			}
		}
	}
}

// skippingPreemption is default preemption that skips hopeless attempts and begins at the first node.
type skippingPreemption struct {
	preemption.Interface
	lowest int32
}

// PodEligibleToPreemptOthers skips preemption for the lowest-priority pods, which have no possible victims: in a full
// cluster the search takes longer than all the rest of their cycle.
func (p skippingPreemption) PodEligibleToPreemptOthers(ctx context.Context, pod *v1.Pod, nominated *fwk.Status) (bool,
	string) {
	if corev1helpers.PodPriority(pod) <= p.lowest {
		return false, "no pod has a lower priority"
	}
	return p.Interface.PodEligibleToPreemptOthers(ctx, pod, nominated)
}

// GetOffsetAndNumCandidates starts at the first node where the original starts at a random one.
func (p skippingPreemption) GetOffsetAndNumCandidates(numNodes int32) (int32, int32) {
	_, candidates := p.Interface.GetOffsetAndNumCandidates(numNodes)
	return 0, candidates
}

// pinnedPreemption is default preemption that has a last criterion between candidates.
type pinnedPreemption struct {
	preemption.Interface
}

// OrderedScoreFuncs are the five criteria of default preemption, followed by the order of names, where the original
// takes the first node of a map.
func (p pinnedPreemption) OrderedScoreFuncs(ctx context.Context,
	victims map[string]*extenderv1.Victims) []func(string) int64 {
	criteria := p.Interface.OrderedScoreFuncs(ctx, victims)
	if len(criteria) == 0 {
		criteria = []func(string) int64{
			func(node string) int64 { return -victims[node].NumPDBViolations },
			func(node string) int64 { return -highestPriority(victims[node].Pods) },
			func(node string) int64 { return -sumOfPriorities(victims[node].Pods) },
			func(node string) int64 { return -int64(len(victims[node].Pods)) },
			func(node string) int64 {
				if start := util.GetEarliestPodStartTime(victims[node]); start != nil {
					return start.UnixNano()
				}
				return math.MinInt64
			},
		}
	}
	rank := make(map[string]int64, len(victims))
	for i, name := range slices.Sorted(maps.Keys(victims)) {
		rank[name] = int64(i)
	}
	return append(criteria, func(node string) int64 { return -rank[node] })
}

// highestPriority is that of the most important victim.
func highestPriority(pods []*v1.Pod) int64 {
	highest := int64(math.MinInt32)
	for _, pod := range pods {
		highest = max(highest, int64(corev1helpers.PodPriority(pod)))
	}
	return highest
}

// sumOfPriorities shifts every priority to a positive one, so that two victims of negative priority weigh more than
// one.
func sumOfPriorities(pods []*v1.Pod) int64 {
	sum := int64(0)
	for _, pod := range pods {
		sum += int64(corev1helpers.PodPriority(pod)) - math.MinInt32
	}
	return sum
}
