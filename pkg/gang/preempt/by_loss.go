package preempt

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"berth.dev/berth/pkg/gang/eviction"
	"berth.dev/berth/pkg/gang/work"
)

// byLoss makes the scheduler's own preemption compare pods by the work that their eviction loses.
type byLoss struct {
	Loss *Loss
	// current is what evictions lose in the current cycle.
	current atomic.Pointer[Moment]
}

// lossAge is how long a Moment is used outside of the cycles that beginCycle begins.
const lossAge = time.Second

// beginCycle begins a cycle, and end ends it.
func (l *byLoss) beginCycle(now time.Time) (end func()) {
	l.current.Store(l.Loss.At(now))
	return func() { l.current.Store(nil) }
}

// moment returns what evictions lose now.
func (l *byLoss) moment() *Moment {
	now, m := time.Now(), l.current.Load()
	if m == nil || now.Sub(m.Now) > lossAge {
		m = l.Loss.At(now)
		l.current.Store(m)
	}
	return m
}

// cost is what the eviction of the pod costs.
func (l *byLoss) cost(pod *v1.Pod) eviction.Cost {
	moment := l.moment()
	v := eviction.Victim{Priority: corev1helpers.PodPriority(pod), Lost: moment.Lost(pod),
		Protected: moment.IsProtected(pod)}
	var cost eviction.Cost
	cost.Add(&v)
	return cost
}

// byLossOnNodes makes the scheduler's own preemption choose the node by the work that is lost there.
type byLossOnNodes struct {
	preemption.Interface
	losses *byLoss
}

// OrderedScoreFuncs compares first how many PodDisruptionBudgets are violated, as kube-scheduler does, and then the
// lost work. Ties go by the names of nodes, and not by the order of a map, so that replays repeat.
func (n *byLossOnNodes) OrderedScoreFuncs(ctx context.Context,
	victims map[string]*extenderv1.Victims) []func(string) int64 {
	if n.losses.Loss.Limits.Unsaved == 0 {
		return n.Interface.OrderedScoreFuncs(ctx, victims)
	}
	costs, order := map[string]eviction.Cost{}, make([]eviction.Cost, 0, len(victims))
	for node, of := range victims {
		var cost eviction.Cost
		for _, pod := range of.Pods {
			cost.Join(n.losses.cost(pod))
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

// latest returns when the first of the pods started, in nanoseconds.
func latest(pods []*v1.Pod) int64 {
	first := int64(math.MaxInt64)
	for _, pod := range pods {
		first = min(first, work.Started(pod).UnixNano())
	}
	return first
}

// moreImportant makes the scheduler's own preemption spare pods that would lose more. It leaves native groups to
// otherwise.
func (l *byLoss) moreImportant(otherwise func(a, b preemption.Victim) bool) func(a, b preemption.Victim) bool {
	return func(a, b preemption.Victim) bool {
		if l.Loss.Limits.Unsaved > 0 && a.Priority() == b.Priority() && len(a.Pods()) == 1 &&
			len(b.Pods()) == 1 && a.Type() == b.Type() {
			order := l.cost(a.Pods()[0].GetPod()).Compare(l.cost(b.Pods()[0].GetPod()))
			if order != 0 {
				return order > 0
			}
		}
		return otherwise(a, b)
	}
}
