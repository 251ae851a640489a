package evictor

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

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/workview"
)

// losses are what the scheduler's own preemption compares pods by.
type losses struct {
	evictor *Evictor
	current atomic.Pointer[current]
}

// current is what evictions lose in the cycle of the pod of that name, if it is known.
type current struct {
	*workview.Moment
	name string
}

// age is for how long what evictions lose is not read again, where no cycle of ours begins.
const age = time.Second

// beginCycle begins the cycle of the pod of that name, and the result ends it.
func (l *losses) beginCycle(name string, now time.Time) (end func()) {
	l.current.Store(&current{l.evictor.Sources.Loss.At(now), name})
	return func() { l.current.Store(nil) }
}

// moment returns what evictions lose now.
func (l *losses) moment() *current {
	now, m := time.Now(), l.current.Load()
	if m == nil || now.Sub(m.Now) > age {
		m = &current{Moment: l.evictor.Sources.Loss.At(now)}
		l.current.Store(m)
	}
	return m
}

// addLosses says of all victims what their eviction loses. Those that have notice for the sake of the request were told
// that they go, so they are the first.
func (b *problemBuilder) addLosses() {
	loss := b.evictor.Sources.Loss
	if loss.Limits.Unsaved == 0 {
		return
	}
	moment := loss.At(b.now)
	for i, pod := range b.victims {
		v := &b.problem.Victims[i]
		if b.evictor.Notifier.IsFor(b.request.name, v.UID) {
			continue
		}
		v.Lost, v.Protected = moment.Lost(pod), moment.IsProtected(pod)
	}
}

// losing says what the eviction of the pod loses, as the end of a sentence; nothing where that does not count.
func losing(pod *v1.Pod, moment *workview.Moment) string {
	if moment.Limits.Unsaved == 0 {
		return ""
	}
	return "; it loses " + moment.Describe(pod)
}

// cost is what the eviction of the pod costs.
func (l *losses) cost(pod *v1.Pod) eviction.Cost {
	moment := l.moment()
	v := eviction.Victim{Priority: corev1helpers.PodPriority(pod)}
	if moment.name == "" || !l.evictor.Notifier.IsFor(moment.name, gang.UID(pod.UID)) {
		v.Lost, v.Protected = moment.Lost(pod), moment.IsProtected(pod)
	}
	var cost eviction.Cost
	cost.Add(&v)
	return cost
}

// moreImportant has the scheduler's own preemption spare pods that would lose more. Between groups of the core it
// decides as ever.
func (p *Profile) moreImportant(otherwise func(a, b preemption.Victim) bool) func(a, b preemption.Victim) bool {
	return func(a, b preemption.Victim) bool {
		if p.evictor.Sources.Loss.Limits.Unsaved > 0 && a.Priority() == b.Priority() && len(a.Pods()) == 1 &&
			len(b.Pods()) == 1 && a.Type() == b.Type() {
			order := p.losses.cost(a.Pods()[0].GetPod()).Compare(p.losses.cost(b.Pods()[0].GetPod()))
			if order != 0 {
				return order > 0
			}
		}
		return otherwise(a, b)
	}
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
	if f.profile.evictor.Sources.Loss.Limits.Unsaved == 0 {
		return f.Interface.OrderedScoreFuncs(ctx, victims)
	}
	costs, order := map[string]eviction.Cost{}, make([]eviction.Cost, 0, len(victims))
	for node, of := range victims {
		var cost eviction.Cost
		for _, pod := range of.Pods {
			cost.Join(f.profile.losses.cost(pod))
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
