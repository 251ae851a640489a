package evictor

import (
	"context"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/workview"
)

// addLosses says of all victims what their eviction loses. A checkpoint of a gang is one for all of its members.
func (b *problemBuilder) addLosses() {
	if b.evictor.Sources.Loss.Limits.Unsaved == 0 {
		return
	}
	members, saved := map[gang.ID][]*v1.Pod{}, map[gang.ID][]time.Time{}
	for i, pod := range b.victims {
		id := b.problem.Victims[i].Group
		members[id] = append(members[id], pod)
	}
	delete(members, gang.ID{})
	for id, pods := range members {
		saved[id] = workview.Saved(b.evictor.Members.Object(id), pods)
	}
	for i, pod := range b.victims {
		v := &b.problem.Victims[i]
		of, group := saved[v.Group], b.evictor.Members.Object(v.Group)
		if v.Group == (gang.ID{}) {
			of = workview.Saved(nil, []*v1.Pod{pod})
		}
		w := b.evictor.Sources.Loss.Within(pod, group, of)
		limits := b.evictor.Sources.Loss.Limits
		v.Lost, v.Protected = w.Lost(b.now, limits), w.IsProtected(b.now, limits)
	}
}

// losing says what the eviction of the pod loses, as the end of a sentence; nothing where that does not count.
func losing(loss *workview.Loss, pod *v1.Pod, now time.Time) string {
	if loss.Limits.Unsaved == 0 {
		return ""
	}
	w := loss.Of(pod)
	return "; it loses " + w.Describe(now, loss.Limits)
}

// costOf is what the eviction of a pod costs.
func (p *Profile) costOf(pod *v1.Pod, now time.Time) eviction.Cost {
	loss := p.evictor.Sources.Loss
	w := loss.Of(pod)
	var cost eviction.Cost
	cost.Add(&eviction.Victim{Priority: corev1helpers.PodPriority(pod), Lost: w.Lost(now, loss.Limits),
		Protected: w.IsProtected(now, loss.Limits)})
	return cost
}

// moreImportant has the scheduler's own preemption spare pods that would lose more. Between groups of the core it
// decides as ever.
func (p *Profile) moreImportant(otherwise func(a, b preemption.Victim) bool) func(a, b preemption.Victim) bool {
	return func(a, b preemption.Victim) bool {
		if p.evictor.Sources.Loss.Limits.Unsaved > 0 && a.Priority() == b.Priority() && len(a.Pods()) == 1 &&
			len(b.Pods()) == 1 && a.Type() == b.Type() {
			now := time.Now()
			order := p.costOf(a.Pods()[0].GetPod(), now).Compare(p.costOf(b.Pods()[0].GetPod(), now))
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
// as in the core: it may exceed them.
func (f *fewest) OrderedScoreFuncs(_ context.Context, victims map[string]*extenderv1.Victims) []func(string) int64 {
	if f.profile.evictor.Sources.Loss.Limits.Unsaved == 0 {
		return nil
	}
	now, costs, order := time.Now(), map[string]eviction.Cost{}, make([]eviction.Cost, 0, len(victims))
	for node, of := range victims {
		var cost eviction.Cost
		for _, pod := range of.Pods {
			cost.Join(f.profile.costOf(pod, now))
		}
		costs[node] = cost
		order = append(order, cost)
	}
	slices.SortFunc(order, eviction.Cost.Compare)
	return []func(string) int64{
		func(node string) int64 { return -victims[node].NumPDBViolations },
		func(node string) int64 {
			place, _ := slices.BinarySearchFunc(order, costs[node], eviction.Cost.Compare)
			return -int64(place)
		},
		func(node string) int64 { return latest(victims[node].Pods) },
	}
}
